// SPDX-License-Identifier: Apache-2.0
// Runs the harness of the container without libFuzzer: sound parts of containers, damaged in a few
// places, and bare bytes.
//
// NACRE_TEST_SEED repeats a run, NACRE_LONG makes it two hundred times longer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fs/crypt/container_format.h"
#include "gpu_engine/checksum/crc32.h"
#include "tests/fuzz/entry.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::fs {
namespace {

using engine::TestRandom;

void append(Bytes& bytes, ByteView more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// With right CRCs, and headers that follow each other; bodies are noise.
Bytes make_records(TestRandom& random) {
  Bytes bytes;
  const std::size_t count = random.below(6);
  for (std::size_t i = 0; i < count; ++i) {
    Bytes record = random.bytes(engine::record_size_bytes_min + random.below(200));
    engine::RecordHeader header{.magic = engine::record_magic,
                                .version = engine::record_version,
                                .stored_size = static_cast<std::uint32_t>(record.size()),
                                .epoch = container_epoch,
                                .counter = static_cast<std::uint32_t>(i)};
    store_le(record.data(), header);
    header.crc32 = engine::crc32(
        engine::crc32(0, ByteView(record).first(engine::record_aad_header_size_bytes)),
        ByteView(record).subspan(engine::record_header_size_bytes));
    store_le(record.data(), header);
    append(bytes, record);
  }
  return bytes;
}

Bytes make_part(Byte kind, TestRandom& random) {
  switch (kind % 4) {
    case 0: {
      const ContainerHeader header{
          .chunk_bits = static_cast<unsigned>(container_chunk_bits_min + random.below(9)),
          .keyring_size = static_cast<std::uint32_t>(1 + random.below(300))};
      const auto encoded = encode(header);
      Bytes bytes(encoded.begin(), encoded.end());
      append(bytes, random.bytes(header.keyring_size));
      append(bytes, make_records(random));
      return bytes;
    }
    case 1:
      return encode(ContainerEnd{
          .size_bytes = random.next(),
          .chunk_count = random.next(),
          .attributes = {.name = std::string(random.below(256), 'n'),
                         .mode = static_cast<std::uint16_t>(random.below(01000)),
                         .modified = ContainerTime{
                             .seconds = static_cast<std::int64_t>(random.next()),
                             .nanoseconds = static_cast<std::uint32_t>(random.below(1000))}}});
    case 2: {
      const auto identity = encode(ContainerRecordName{
          .index = random.next(),
          .kind = random.below(2) == 0 ? ContainerRecordKind::chunk : ContainerRecordKind::end});
      return Bytes(identity.begin(), identity.end());
    }
    default:
      return make_records(random);
  }
}

TEST(Fuzz, container) {
  TestRandom random;
  const int rounds = std::getenv("NACRE_LONG") == nullptr ? 10000 : 2000000;
  for (int round = 0; round < rounds; ++round) {
    const auto kind = static_cast<Byte>(random.below(48));
    Bytes input = round % 16 == 0 ? random.bytes(random.below(600)) : make_part(kind, random);
    if (round % 8 != 0) engine::mutate(input, random);
    input.insert(input.begin(), kind);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  fmt::print("{} seeded inputs\n", rounds);
}

}  // namespace
}  // namespace nacre::fs
