// SPDX-License-Identifier: Apache-2.0
// Checksums: ISA-L by a direct call, zlib, and a copy of the bytes, which shows the cost of
// touching them. The output of a checksum is its value, u32 little-endian.
#include <isa-l/crc.h>
#if NACRE_HAS_ZLIB
#include <zlib.h>
#endif

#include <algorithm>

#include <fmt/format.h>

#include "gpu_engine/baseline/baseline_parts.h"

namespace nacre::engine {
namespace {

using Size = std::optional<std::size_t>;

Size put(std::uint32_t value, MutableByteView out) {
  store_le(out.data(), value);
  return sizeof value;
}

std::unique_ptr<Baseline> make_isal(Checksum checksum) {
  if (checksum == Checksum::crc32) {
    return each_piece([](ByteView in, MutableByteView out) {
      return put(crc32_gzip_refl(0, in.data(), in.size()), out);
    });
  }
  return each_piece([](ByteView in, MutableByteView out) {
    return put(~crc32_iscsi(const_cast<Byte*>(in.data()), static_cast<int>(in.size()), ~0u), out);
  });
}

}  // namespace

void add_checksum_baselines(const BaselineTask& task, BaselineLibraries& libraries) {
  libraries.push_back({"ISA-L", "", true, "libisal-dev",
                       [checksum = task.checksum] { return make_isal(checksum); }});
  if (task.checksum == Checksum::crc32) {
#if NACRE_HAS_ZLIB
    libraries.push_back({fmt::format("zlib {}", zlibVersion()), "", true, "zlib1g-dev", [] {
                           return each_piece([](ByteView in, MutableByteView out) {
                             return put(
                                 static_cast<std::uint32_t>(crc32_z(0, in.data(), in.size())), out);
                           });
                         }});
#else
    libraries.push_back({"zlib", "", true, "zlib1g-dev", {}});
#endif
  }
  libraries.push_back({"memcpy", "copies the bytes", false, "", [] {
                         return each_piece([](ByteView in, MutableByteView out) {
                           std::copy(in.begin(), in.end(), out.begin());
                           return Size(in.size());
                         });
                       }});
}

}  // namespace nacre::engine
