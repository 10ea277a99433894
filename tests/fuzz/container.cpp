// SPDX-License-Identifier: Apache-2.0
// Any bytes as a container, as far as no key is needed; and as the plain bytes of an end record.
// What is accepted must have one encoding only, and nothing may be read past the bytes.
#include <algorithm>
#include <cstdlib>

#include "fs/crypt/container_inspect.h"
#include "tests/fuzz/entry.h"

namespace {

using nacre::Byte;
using nacre::ByteView;
using nacre::MutableByteView;
namespace fs = nacre::fs;

void require(bool holds) {
  if (!holds) std::abort();
}

void try_header(ByteView bytes) {
  const auto header = fs::parse_container_header(bytes);
  if (!header) return;
  const auto encoded = fs::encode(*header);
  require(std::equal(encoded.begin(), encoded.end(), bytes.begin()));
}

void try_end(ByteView bytes) {
  const auto end = fs::parse_container_end(bytes);
  if (!end) return;
  const nacre::Bytes encoded = fs::encode(*end);
  require(std::equal(encoded.begin(), encoded.end(), bytes.begin(), bytes.end()));
}

void try_identity(ByteView bytes) {
  nacre::engine::RecordIdentity identity;
  if (bytes.size() < identity.size()) return;
  std::copy_n(bytes.begin(), identity.size(), identity.begin());
  const auto name = fs::decode_container_record_name(identity);
  if (name) require(fs::encode(*name) == identity);
}

// The records' headers, with every suite's way to count.
void try_records(ByteView bytes, Byte suite_number) {
  const auto suite = nacre::engine::suite_from_number(suite_number);
  fs::RecordSequence sequence(suite.value_or(nacre::engine::CipherSuite::aes_256_gcm));
  while (true) {
    const auto size = sequence.next_record_size(bytes);
    if (!size || *size == 0) return;
    require(*size <= bytes.size());
    sequence.take();
    bytes = bytes.subspan(*size);
  }
}

void try_container(ByteView bytes) {
  const auto found = fs::inspect_container([&](MutableByteView out) -> nacre::Result<std::size_t> {
    const std::size_t size = std::min(out.size(), bytes.size());
    std::copy_n(bytes.begin(), size, out.begin());
    bytes = bytes.subspan(size);
    return size;
  });
  if (found) require(found->record_count > 0 && bytes.empty());
}

}  // namespace

// The first byte says as what.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      try_header(bytes);
      try_container(bytes);
      break;
    case 1:
      try_end(bytes);
      break;
    case 2:
      try_identity(bytes);
      break;
    default:
      try_records(bytes, data[0] / 4);
  }
  return 0;
}
