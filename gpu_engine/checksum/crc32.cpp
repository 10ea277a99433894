// SPDX-License-Identifier: Apache-2.0
// CRC-32 and CRC-32C by ISA-L's folding code (PCLMULQDQ and its wide forms, or the crc32
// instruction, chosen at run time), and the plain definitions.
//
// ISA-L's crc32_gzip_refl() inverts before and after by itself, so a CRC is continued by passing
// the last CRC in, as with zlib's crc32(). ISA-L's crc32_iscsi() does not invert, and its size is
// an int.
#include "gpu_engine/checksum/crc32.h"

#include <isa-l/crc.h>

#include <algorithm>

#include "gpu_engine/checksum/crc_reference.h"

namespace nacre::engine {

std::uint32_t crc32(std::uint32_t crc, ByteView bytes) {
  if (bytes.empty()) return crc;
  return crc32_gzip_refl(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c(std::uint32_t crc, ByteView bytes) {
  constexpr std::size_t piece_size_bytes_max = std::size_t{1} << 30;
  crc = ~crc;
  while (!bytes.empty()) {
    const ByteView piece = bytes.first(std::min(bytes.size(), piece_size_bytes_max));
    // ISA-L only reads: its parameter lacks const.
    crc = crc32_iscsi(const_cast<Byte*>(piece.data()), static_cast<int>(piece.size()), crc);
    bytes = bytes.subspan(piece.size());
  }
  return ~crc;
}

std::uint32_t crc32_reference(std::uint32_t crc, ByteView bytes) {
  return crc_reference<crc32_polynomial_reflected>(crc, bytes);
}

std::uint32_t crc32c_reference(std::uint32_t crc, ByteView bytes) {
  return crc_reference<crc32c_polynomial_reflected>(crc, bytes);
}

}  // namespace nacre::engine
