// SPDX-License-Identifier: Apache-2.0
// Exchanging the key of a record without decompressing it.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/engine.h"
#include "gpu_engine/seal.h"
#include "tests/gpu_engine/all_suites.h"
#include "tests/gpu_engine/one_message.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"
#include "tests/gpu_engine/test_payload.h"

namespace nacre::engine {
namespace {

class Reseal : public testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = std::make_unique<OneMessage>(test_engine_choice()); }
  static void TearDownTestSuite() { engine_.reset(); }

  Reseal() {
    random_.fill(volume_id_);
    random_.fill(old_.salt);
    random_.fill(old_.identity);
    old_.epoch = 1;
    old_.counter = 77;
    old_.codec = Codec::lz77;
    new_ = old_;
    random_.fill(new_.salt);
    new_.epoch = 2;
    new_.counter = 5;
    new_.check_identity = true;
  }

  SuiteKey make_key(CipherSuite suite) { return {suite, random_.bytes(key_size_bytes(suite))}; }

  static MessageResult run(Operation operation, Message message, const VolumeId& volume_id,
                           const SuiteKey& key, ByteView in, MutableByteView out,
                           const SuiteKey* new_key = nullptr) {
    message.operation = operation;
    return engine_->run(message, volume_id, key, in, out, new_key);
  }

  Bytes seal(const SuiteKey& with, ByteView plain) {
    Bytes record(record_size_bound(with.suite, old_.padding, plain.size()));
    const MessageResult result = run(Operation::seal, old_, volume_id_, with, plain, record);
    EXPECT_TRUE(result.ok) << result.detail;
    record.resize(result.output_size);
    return record;
  }

  MessageResult reseal_into(const SuiteKey& from, const SuiteKey& to, ByteView record,
                            MutableByteView out) {
    return run(Operation::reseal, new_, volume_id_, from, record, out, &to);
  }
  MessageResult reseal(const SuiteKey& from, const SuiteKey& to, ByteView record) {
    return reseal_into(from, to, record, out_);
  }
  MessageResult unseal(const SuiteKey& with, ByteView record, MutableByteView out) {
    return run(Operation::unseal, new_, volume_id_, with, record, out);
  }

  TestRandom random_;
  VolumeId volume_id_ = {};
  Message old_;
  Message new_;
  // Room for any record that these tests make.
  Bytes out_ = Bytes(64u << 10);
  static std::unique_ptr<OneMessage> engine_;
};
std::unique_ptr<OneMessage> Reseal::engine_;

TEST_F(Reseal, goes_from_any_suite_to_any_other_and_keeps_all_but_the_key) {
  for (const CipherSuite from_suite : all_suites()) {
    for (const CipherSuite to_suite : all_suites()) {
      SCOPED_TRACE(std::string(to_string(from_suite)) + " to " + std::string(to_string(to_suite)));
      const SuiteKey from = make_key(from_suite);
      const SuiteKey to = make_key(to_suite);
      for (const std::size_t size : {0u, 1u, 333u, 5000u}) {
        old_.padding = random_.below(2) == 0 ? Padding::none : Padding::padme;
        new_.padding = random_.below(2) == 0 ? Padding::none : Padding::padme;
        const Bytes plain = make_data(DataKind::text, size, random_);
        const Bytes record = seal(from, plain);
        const MessageResult result = reseal(from, to, record);
        ASSERT_TRUE(result.ok) << result.detail;
        EXPECT_EQ(result.identity, old_.identity);
        EXPECT_LE(result.output_size, record_size_bound(to_suite, new_.padding, size));
        const ByteView made = ByteView(out_).first(result.output_size);
        const auto header = verify_record_crc(made);
        ASSERT_TRUE(header.has_value());
        EXPECT_EQ(header->epoch, 2u);
        EXPECT_EQ(header->counter, 5u);
        EXPECT_EQ(header->salt, new_.salt);
        Bytes opened(size);
        const MessageResult unsealed = unseal(to, made, opened);
        ASSERT_TRUE(unsealed.ok) << unsealed.detail;
        EXPECT_TRUE(opened == plain);
        EXPECT_EQ(unsealed.codec, result.codec);
      }
    }
  }
}

// The result equals that of sealing the plain bytes anew, so nothing of the old record is left.
TEST_F(Reseal, gives_the_record_that_sealing_under_the_new_key_gives) {
  const SuiteKey from = make_key(CipherSuite::aes_256_gcm);
  const SuiteKey to = make_key(CipherSuite::aes_128_cbc);
  const Bytes plain = make_data(DataKind::text, 30000, random_);
  const Bytes record = seal(from, plain);
  const MessageResult result = reseal(from, to, record);
  ASSERT_TRUE(result.ok);
  Bytes anew(record_size_bound(to.suite, new_.padding, plain.size()));
  const MessageResult sealed = run(Operation::seal, new_, volume_id_, to, plain, anew);
  ASSERT_EQ(result.output_size, sealed.output_size);
  EXPECT_TRUE(std::equal(
      anew.begin(), anew.begin() + static_cast<std::ptrdiff_t>(sealed.output_size), out_.begin()));
}

TEST_F(Reseal, refuses_what_unsealing_refuses_and_writes_nothing) {
  const SuiteKey from = make_key(CipherSuite::aes_256_ctr);
  const SuiteKey to = make_key(CipherSuite::aes_256_gcm);
  const Bytes record = seal(from, make_data(DataKind::text, 300, random_));
  std::fill(out_.begin(), out_.end(), Byte{0xee});
  const auto expect = [&](ErrorCode error, ByteView bytes, const std::string& what) {
    const MessageResult result = reseal(from, to, bytes);
    ASSERT_FALSE(result.ok) << what;
    EXPECT_EQ(result.error, error) << what << ": " << result.detail;
    EXPECT_TRUE(std::ranges::all_of(out_, [](Byte b) { return b == 0xee; })) << what;
  };
  for (std::size_t at = 0; at < record.size(); ++at) {
    Bytes changed = record;
    changed[at] ^= 0x01;
    expect(ErrorCode::corrupt, changed, "byte " + std::to_string(at));
    if (at < offsetof(RecordHeader, epoch) ||
        (at >= offsetof(RecordHeader, crc32) && at < record_header_size_bytes))
      continue;
    store_le(changed.data() + offsetof(RecordHeader, crc32),
             crc32(crc32(0, ByteView(changed).first(36)), ByteView(changed).subspan(40)));
    expect(ErrorCode::tampered, changed, "byte " + std::to_string(at) + " with its CRC");
  }
  new_.identity[0] ^= 1;
  expect(ErrorCode::tampered, record, "another identity");
  new_.check_identity = false;
  const MessageResult unchecked = reseal(from, to, record);
  EXPECT_TRUE(unchecked.ok);
  EXPECT_EQ(unchecked.identity, old_.identity) << "the record's own is kept";
}

TEST_F(Reseal, says_when_the_output_is_too_small) {
  const SuiteKey from = make_key(CipherSuite::aes_256_gcm);
  const SuiteKey to = make_key(CipherSuite::aes_256_cbc);
  const Bytes record = seal(from, random_.bytes(1000));
  const std::size_t size = reseal(from, to, record).output_size;
  for (const std::size_t capacity : {std::size_t{0}, record.size(), size - 1}) {
    Bytes small(capacity);
    const MessageResult result = reseal_into(from, to, record, small);
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.error, ErrorCode::range);
  }
  Bytes exact(size);
  EXPECT_TRUE(reseal_into(from, to, record, exact).ok);
}

// A codec of a later version is carried along.
TEST_F(Reseal, keeps_streams_of_codecs_that_it_does_not_know) {
  const SuiteKey from = make_key(CipherSuite::aes_256_gcm);
  const SuiteKey to = make_key(CipherSuite::aes_128_gcm);
  Bytes record = seal(from, random_.bytes(100));
  // Forged by a holder of the key: the same body under codec 200.
  const auto header = parse_record_header(record).value();
  Bytes aad(volume_id_.begin(), volume_id_.end());
  aad.insert(aad.end(), record.begin(), record.begin() + 36);
  Bytes nonce(nonce_size_bytes);
  store_le(nonce.data() + 4, std::uint64_t{header.counter});
  const MutableByteView view(record);
  const MutableByteView body = view.subspan(40, record.size() - 56);
  const auto holder = AeadKey::create(from.suite, from.key).value();
  ASSERT_TRUE(holder->open(nonce, aad, body, view.last(16), body));
  body[0] = 200;
  holder->seal(nonce, aad, body, body, view.last(16));
  store_le(record.data() + offsetof(RecordHeader, crc32),
           crc32(crc32(0, ByteView(record).first(36)), ByteView(record).subspan(40)));
  const MessageResult result = reseal(from, to, record);
  ASSERT_TRUE(result.ok) << result.detail;
  EXPECT_EQ(result.codec, Codec{200});
  Bytes out(100);
  const MessageResult unsealed = unseal(to, ByteView(out_).first(result.output_size), out);
  EXPECT_EQ(unsealed.error, ErrorCode::unsupported);
}

TEST_F(Reseal, runs_in_payloads_beside_other_messages) {
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 3}).value();
  const Bytes old_key = random_.bytes(32);
  const Bytes new_key = random_.bytes(key_size_bytes(CipherSuite::aes_192_cbc));
  TestPayload sealing(*engine);
  std::vector<Bytes> plains;
  for (std::uint32_t i = 0; i < 30; ++i) {
    plains.push_back(make_data(DataKind::mixed, 3000 * i, random_));
    sealing.add_seal(plains.back(), old_key, Codec::zstd, i).identity[3] = static_cast<Byte>(i);
  }
  engine->run(sealing.get());
  TestPayload resealing(*engine);
  for (std::uint32_t i = 0; i < plains.size(); ++i) {
    Message& message =
        resealing.add(Operation::reseal, sealing.output(i),
                      record_size_bound(CipherSuite::aes_192_cbc, Padding::none, plains[i].size()));
    message.key_index = resealing.get().add_key(CipherSuite::aes_256_gcm, old_key);
    message.new_key_index = resealing.get().add_key(CipherSuite::aes_192_cbc, new_key);
    message.counter = 1000 + i;
    if (i == 7) message.new_key_index = 99;
    if (i == 8) message.key_index = message.new_key_index;
  }
  engine->run(resealing.get());
  TestPayload opening(*engine);
  for (std::size_t i = 0; i < plains.size(); ++i) {
    ASSERT_EQ(resealing.result(i).ok, i != 7 && i != 8) << resealing.result(i).detail;
    if (!resealing.result(i).ok) {
      EXPECT_EQ(resealing.result(i).error,
                i == 7 ? ErrorCode::invalid_argument : ErrorCode::tampered);
      continue;
    }
    Message& message = opening.add(Operation::unseal, resealing.output(i), plains[i].size());
    message.key_index = opening.get().add_key(CipherSuite::aes_192_cbc, new_key);
    message.check_identity = true;
    message.identity[3] = static_cast<Byte>(i);
  }
  engine->run(opening.get());
  std::size_t at = 0;
  for (std::size_t i = 0; i < plains.size(); ++i) {
    if (i == 7 || i == 8) continue;
    ASSERT_TRUE(opening.result(at).ok) << opening.result(at).detail;
    EXPECT_TRUE(std::ranges::equal(opening.output(at), plains[i]));
    ++at;
  }
}

}  // namespace
}  // namespace nacre::engine
