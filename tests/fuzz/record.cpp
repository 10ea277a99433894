// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a record, sealed under a known key: behind the tag are the body's
// fields, the identity, and the codecs. Input: suite, room for the plain bytes (u16), then the body
// or, where the suite is 0, the record as it lies on disk.
#include <cstdlib>
#include <memory>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/record/record.h"
#include "gpu_engine/seal.h"
#include "tests/fuzz/decoder_input.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace nacre;
using namespace nacre::engine;

constexpr VolumeId volume_id = {1, 2, 3};
constexpr std::size_t body_size_max = 100'000;

const AeadKey& key_of(CipherSuite suite) {
  static std::array<std::shared_ptr<const AeadKey>, 12> keys;
  auto& key = keys[static_cast<std::size_t>(suite)];
  if (!key) key = AeadKey::create(suite, Bytes(key_size_bytes(suite), 0x42)).value();
  return *key;
}

// docs/FORMAT.md, "Record".
Bytes seal(CipherSuite suite, ByteView body) {
  const std::size_t unit = plain_unit_bytes(suite);
  Bytes plain(body.begin(), body.end());
  plain.resize((plain.size() + unit - 1) / unit * unit);
  Bytes record(40 + plain.size() + tag_size_bytes(suite));
  store_le(&record[0], record_magic);
  record[4] = record_version;
  store_le(&record[8], static_cast<std::uint32_t>(record.size()));
  store_le(&record[12], std::uint32_t{1});
  store_le(&record[32], std::uint32_t{5});
  Bytes aad(volume_id.begin(), volume_id.end());
  aad.insert(aad.end(), record.begin(), record.begin() + 36);
  std::array<Byte, 12> nonce = {};
  store_le(&nonce[4], std::uint64_t{5});
  const MutableByteView out(record);
  key_of(suite).seal(nonce, aad, plain, out.subspan(40, plain.size()),
                     out.last(tag_size_bytes(suite)));
  store_le(&record[36], crc32(crc32(0, ByteView(record).first(36)), ByteView(record).subspan(40)));
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const ByteView bytes(data + 3, std::min(size - 3, body_size_max));
  const auto suite = static_cast<CipherSuite>(std::max(1, data[0] % 12));
  static GuardedMemory input(body_size_max + 200);
  static GuardedMemory output(1u << 16);
  const MutableByteView plain = output.last(load_le<std::uint16_t>(data + 1));
  const Bytes record = data[0] % 12 == 0 ? Bytes(bytes.begin(), bytes.end()) : seal(suite, bytes);
  const MutableByteView exact = input.last(record.size());
  std::copy(record.begin(), record.end(), exact.begin());
  if (const auto header = check_record_crc(exact); !header && data[0] % 12 != 0) {
    // The only fault that such bytes may have is that they are too short for a record.
    if (record.size() >= record_size_bytes_min) std::abort();
  }
  const MessageResult result =
      unseal_record(key_of(suite), suite, volume_id, {.check_identity = false}, exact, plain);
  if (result.ok && result.output_size > plain.size()) std::abort();
  if (!result.ok && data[0] % 12 != 0 && result.error == ErrorCode::tampered) std::abort();
  return 0;
}
