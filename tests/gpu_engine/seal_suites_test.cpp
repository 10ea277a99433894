// SPDX-License-Identifier: Apache-2.0
// Records under every cipher suite: round trips, and every verdict on what was done to a record.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/seal.h"
#include "tests/gpu_engine/all_suites.h"
#include "tests/gpu_engine/one_message.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"

namespace nacre::engine {
namespace {

void put_crc(Bytes& record) {
  const ByteView view(record);
  store_le(record.data() + offsetof(RecordHeader, crc32),
           crc32(crc32(0, view.first(36)), view.subspan(40)));
}

class SealSuites : public testing::TestWithParam<CipherSuite> {
 protected:
  static void SetUpTestSuite() { engine_ = std::make_unique<OneMessage>(test_engine_choice()); }
  static void TearDownTestSuite() { engine_.reset(); }

  SealSuites() {
    random_.fill(volume_id_);
    random_.fill(message_.salt);
    random_.fill(message_.identity);
    message_.codec = Codec::lz77;
    message_.check_identity = true;
    message_.epoch = 3;
    message_.counter = 0x89abcdef;
    key_ = {suite(), random_.bytes(key_size_bytes(suite()))};
  }
  static CipherSuite suite() { return GetParam(); }

  Bytes seal(ByteView plain) {
    Bytes record(record_size_bound(suite(), message_.padding, plain.size()));
    message_.operation = Operation::seal;
    const MessageResult result = engine_->run(message_, volume_id_, key_, plain, record);
    EXPECT_TRUE(result.ok) << result.detail;
    EXPECT_LE(result.output_size, record.size());
    record.resize(result.output_size);
    return record;
  }

  MessageResult unseal(ByteView record, std::size_t capacity) {
    plain_.assign(capacity, 0xee);
    message_.operation = Operation::unseal;
    const MessageResult result = engine_->run(message_, volume_id_, key_, record, plain_);
    const bool untouched = std::ranges::all_of(plain_, [](Byte b) { return b == 0xee || b == 0; });
    EXPECT_TRUE(result.ok || untouched) << "plain bytes of a refused record";
    return result;
  }

  TestRandom random_;
  VolumeId volume_id_ = {};
  Message message_;
  SuiteKey key_;
  Bytes plain_;
  static std::unique_ptr<OneMessage> engine_;
};
std::unique_ptr<OneMessage> SealSuites::engine_;

INSTANTIATE_TEST_SUITE_P(Suites, SealSuites, testing::ValuesIn(all_suites()),
                         [](const auto& test) { return test_name(test.param); });

TEST_P(SealSuites, give_back_what_they_were_given) {
  for (const Padding padding : {Padding::none, Padding::padme}) {
    for (const DataKind kind : {DataKind::text, DataKind::random}) {
      for (const std::size_t size : {0, 1, 7, 31, 32, 33, 4095, 4096, 4097, 65535, 65536}) {
        message_.padding = padding;
        const Bytes plain = make_data(kind, size, random_);
        const Bytes record = seal(plain);
        ASSERT_TRUE(verify_record_crc(record).has_value());
        EXPECT_EQ((record.size() - 40 - tag_size_bytes(suite())) % plain_unit_bytes(suite()), 0u);
        const MessageResult result = unseal(record, size);
        ASSERT_TRUE(result.ok) << result.detail << " size " << size;
        ASSERT_TRUE(plain_ == plain);
        EXPECT_EQ(result.identity, message_.identity);
      }
    }
  }
}

TEST_P(SealSuites, the_largest_chunk_fits_the_format_bound) {
  message_.padding = Padding::padme;
  const Bytes plain = random_.bytes(chunk_size_bytes_max);
  const Bytes record = seal(plain);
  EXPECT_LE(record.size(), record_size_bytes_max);
  EXPECT_TRUE(unseal(record, plain.size()).ok);
  EXPECT_TRUE(plain_ == plain);
}

TEST_P(SealSuites, any_changed_byte_is_rot) {
  const Bytes record = seal(make_data(DataKind::text, 150, random_));
  for (std::size_t at = 0; at < record.size(); ++at) {
    for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
      Bytes changed = record;
      changed[at] = static_cast<Byte>(changed[at] ^ change);
      const MessageResult result = unseal(changed, 5000);
      ASSERT_FALSE(result.ok) << "byte " << at;
      const bool later_version = at == offsetof(RecordHeader, version) && change != 0x01;
      EXPECT_TRUE(result.error == ErrorCode::corrupt ||
                  (later_version && result.error == ErrorCode::unsupported))
          << "byte " << at;
    }
  }
}

TEST_P(SealSuites, any_changed_byte_with_its_crc_put_right_is_tampering) {
  const Bytes record = seal(make_data(DataKind::text, 150, random_));
  for (std::size_t at = 0; at < record.size(); ++at) {
    if (at >= offsetof(RecordHeader, crc32) && at < record_header_size_bytes) continue;
    for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
      Bytes changed = record;
      changed[at] = static_cast<Byte>(changed[at] ^ change);
      put_crc(changed);
      // Magic, version, reserved and size fields are caught before the tag.
      const bool structure = at < offsetof(RecordHeader, epoch);
      const MessageResult result = unseal(changed, 5000);
      ASSERT_FALSE(result.ok) << "byte " << at;
      EXPECT_TRUE(structure || result.error == ErrorCode::tampered) << "byte " << at;
    }
  }
}

TEST_P(SealSuites, records_cut_and_patched_to_any_size_are_refused) {
  const Bytes record = seal(make_data(DataKind::text, 150, random_));
  for (std::size_t size = record_size_bytes_min; size < record.size(); ++size) {
    Bytes shorter(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(size));
    store_le(shorter.data() + 8, static_cast<std::uint32_t>(size));
    put_crc(shorter);
    const MessageResult result = unseal(shorter, 5000);
    ASSERT_FALSE(result.ok) << size;
    const bool too_small = size < 84 + tag_size_bytes(suite());
    EXPECT_EQ(result.error, too_small ? ErrorCode::corrupt : ErrorCode::tampered) << size;
  }
}

TEST_P(SealSuites, another_key_volume_counter_or_identity_is_tampering) {
  const Bytes plain = make_data(DataKind::text, 150, random_);
  const Bytes record = seal(plain);
  const SuiteKey right_key = key_;
  key_.key = random_.bytes(key_size_bytes(suite()));
  EXPECT_EQ(unseal(record, 200).error, ErrorCode::tampered);
  key_ = right_key;
  volume_id_[5] ^= 1;
  EXPECT_EQ(unseal(record, 200).error, ErrorCode::tampered);
  volume_id_[5] ^= 1;
  message_.identity[31] ^= 1;
  EXPECT_EQ(unseal(record, 200).error, ErrorCode::tampered);
  message_.identity[31] ^= 1;
  EXPECT_TRUE(unseal(record, 200).ok);
}

TEST_P(SealSuites, a_record_of_one_suite_is_none_of_another) {
  const Bytes plain = make_data(DataKind::text, 150, random_);
  const Bytes record = seal(plain);
  for (const CipherSuite other : all_suites()) {
    if (other == suite()) continue;
    key_ = {other, Bytes(key_size_bytes(other))};
    const MessageResult result = unseal(record, 200);
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.error, ErrorCode::tampered);
  }
}

TEST_P(SealSuites, equal_records_under_two_counters_share_nothing) {
  const Bytes plain = make_data(DataKind::text, 4000, random_);
  message_.codec = Codec::none;
  const Bytes one = seal(plain);
  ++message_.counter;
  const Bytes other = seal(plain);
  ASSERT_EQ(one.size(), other.size());
  std::size_t equal_blocks = 0;
  for (std::size_t at = 40; at + 8 <= one.size(); at += 8)
    equal_blocks += std::equal(one.begin() + static_cast<std::ptrdiff_t>(at),
                               one.begin() + static_cast<std::ptrdiff_t>(at) + 8,
                               other.begin() + static_cast<std::ptrdiff_t>(at));
  EXPECT_EQ(equal_blocks, 0u);
}

}  // namespace
}  // namespace nacre::engine
