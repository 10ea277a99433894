// SPDX-License-Identifier: Apache-2.0
// Messages up to the longest: 1 GiB. Operations that only read always run at that length, over
// pages that were never written and take no memory. Operations that write as much run at that
// length with NACRE_LONG=1 (some 4 GiB of memory), otherwise at 40 MiB.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <zlib.h>

#include <cstdlib>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc_reference.h"
#include "gpu_engine/engine.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"

namespace nacre::engine {
namespace {

// Zero pages that become memory where they are written.
class SparseMemory {
 public:
  explicit SparseMemory(std::size_t size)
      : size_(size),
        data_(static_cast<Byte*>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~SparseMemory() { munmap(data_, size_); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  Byte* data() { return data_; }
  std::size_t size() const { return size_; }
  ByteView view() const { return {data_, size_}; }

 private:
  std::size_t size_;
  Byte* data_;
};

std::unique_ptr<Engine> make_engine() {
  return Engine::create({.choice = test_engine_choice(), .thread_count = 2}).value();
}

Payload make_long_payload(SparseMemory& input, SparseMemory& output) {
  Payload payload;
  payload.input = input.data();
  payload.input_size = input.size();
  payload.output = output.data();
  payload.output_size = output.size();
  return payload;
}

std::uint32_t zlib_crc32(ByteView bytes) {
  uLong crc = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 1u << 20) {
    const ByteView part = bytes.subspan(at, std::min<std::size_t>(1u << 20, bytes.size() - at));
    crc = ::crc32(crc, part.data(), static_cast<uInt>(part.size()));
  }
  return static_cast<std::uint32_t>(crc);
}

constexpr std::uint64_t gib = message_size_bytes_max;

TEST(EngineLongMessages, a_gibibyte_is_read_to_its_last_byte) {
  SparseMemory input(gib);
  SparseMemory output(8u << 20);
  for (const std::uint64_t at : {gib / 3, gib / 2 - 1, gib - 1})
    input.data()[at] = 0x5a;
  Payload payload = make_long_payload(input, output);
  const auto engine = make_engine();
  Message& checksum = payload.messages.emplace_back();
  checksum.operation = Operation::checksum;
  checksum.input_size = gib;
  Message& compress = payload.messages.emplace_back();
  compress.operation = Operation::compress;
  compress.codec = Codec::lz77;
  compress.input_size = gib;
  compress.output_capacity = output.size();
  Message& castagnoli = payload.messages.emplace_back();
  castagnoli.operation = Operation::checksum;
  castagnoli.checksum = Checksum::crc32c;
  castagnoli.input_size = gib;
  engine->run(payload);
  ASSERT_TRUE(payload.results[2].ok) << payload.results[2].detail;
  EXPECT_EQ(payload.results[2].crc32c, crc_reference<crc32c_polynomial_reflected>(0, input.view()));
  ASSERT_TRUE(payload.results[0].ok) << payload.results[0].detail;
  EXPECT_EQ(payload.results[0].crc32, zlib_crc32(input.view()));
  ASSERT_TRUE(payload.results[1].ok) << payload.results[1].detail;
  // 257 bytes or so for each 64 KiB of zeros.
  EXPECT_GT(payload.results[1].output_size, gib / 65536 * 200);
  EXPECT_LT(payload.results[1].output_size, gib / 65536 * 300);
}

// Each operation gets the longest input that it may have, and one byte more. No input is a valid
// stream or has a right tag, so an input that is not too long fails for that reason.
TEST(EngineLongMessages, a_byte_more_is_refused_before_anything_is_read) {
  const std::uint64_t stream_size_max = stream_size_bound(Codec::zstd, gib);
  SparseMemory input(stream_size_max + 1);
  SparseMemory output(2 * gib);
  Payload payload = make_long_payload(input, output);
  const std::uint32_t cipher = payload.add_key(BlockCipher::aes_256, CipherMode::ctr, Bytes(32, 1));
  const std::uint32_t suite = payload.add_key(CipherSuite::aes_256_ctr, Bytes(64, 1));
  const auto add = [&](Operation operation, std::uint64_t size, std::uint64_t room) -> Message& {
    Message& message = payload.messages.emplace_back();
    message.operation = operation;
    message.codec = Codec::lz77;
    message.key_index = cipher;
    message.input_size = size;
    message.output_capacity = room;
    return message;
  };
  for (const std::uint64_t more : {1, 32}) {
    add(Operation::checksum, gib + more, 0);
    add(Operation::compress, gib + more, 2 * gib);
    add(Operation::encrypt, gib + more, gib + more);
    add(Operation::encrypt, gib + more, 2 * gib).key_index = suite;
    add(Operation::seal, gib + more, 2 * gib).key_index = suite;
  }
  add(Operation::decrypt, gib + 32 + 1, 2 * gib).key_index = suite;
  add(Operation::decompress, stream_size_bound(Codec::lz77, gib) + 1, 4096);
  add(Operation::decompress, stream_size_max + 1, 4096).codec = Codec::zstd;
  add(Operation::decompress, 4096, gib + 1);
  const std::size_t too_big = payload.messages.size();
  for (const Codec codec : {Codec::lz77, Codec::gdeflate, Codec::rle, Codec::lzw, Codec::zstd})
    add(Operation::decompress, stream_size_bound(codec, gib), 4096).codec = codec;
  make_engine()->run(payload);
  for (std::size_t i = 0; i < payload.results.size(); ++i) {
    EXPECT_FALSE(payload.results[i].ok) << i;
    EXPECT_EQ(payload.results[i].error, i < too_big ? ErrorCode::too_big : ErrorCode::corrupt)
        << i << ": " << payload.results[i].detail;
  }
}

class LongRoundTrip : public testing::Test {
 protected:
  static std::uint64_t size() {
    return std::getenv("NACRE_LONG") != nullptr ? gib : (40u << 20) + 16;
  }

  LongRoundTrip()
      : plain_(size()), sealed_(stream_size_bound(Codec::automatic, size())), back_(size()) {
    TestRandom random;
    const Bytes pattern = make_data(DataKind::text, 1u << 20, random);
    for (std::uint64_t at = 0; at < size(); at += pattern.size())
      std::copy_n(pattern.begin(), std::min<std::uint64_t>(pattern.size(), size() - at),
                  plain_.data() + at);
    for (std::uint64_t at = 0; at < size(); at += 60000)  // no two chunks alike
      store_le(plain_.data() + std::min(at, size() - 8), at);
  }

  // Runs one message from memory to memory.
  MessageResult run(Message message, SparseMemory& from, std::uint64_t from_size,
                    SparseMemory& to) {
    message.input_size = from_size;
    payload_.input = from.data();
    payload_.input_size = from.size();
    payload_.output = to.data();
    payload_.output_size = to.size();
    payload_.messages = {message};
    engine_->run(payload_);
    return payload_.results[0];
  }

  void expect_plain_is_back() const {
    EXPECT_TRUE(std::equal(plain_.view().begin(), plain_.view().end(), back_.view().begin()));
  }

  SparseMemory plain_;
  SparseMemory sealed_;
  SparseMemory back_;
  Payload payload_;
  std::unique_ptr<Engine> engine_ = make_engine();
};

TEST_F(LongRoundTrip, codecs) {
  for (const auto& [codec, level] :
       {std::pair{Codec::lz77, 0}, std::pair{Codec::gdeflate, 1}, std::pair{Codec::zstd, 1}}) {
    Message message;
    message.operation = Operation::compress;
    message.codec = codec;
    message.level = static_cast<std::int8_t>(level);
    message.output_capacity = sealed_.size();
    const MessageResult stream = run(message, plain_, size(), sealed_);
    ASSERT_TRUE(stream.ok) << stream.detail;
    EXPECT_LT(stream.output_size, size());
    message.operation = Operation::decompress;
    message.output_capacity = size();
    const MessageResult plain = run(message, sealed_, stream.output_size, back_);
    ASSERT_TRUE(plain.ok) << plain.detail;
    ASSERT_EQ(plain.output_size, size());
    expect_plain_is_back();
  }
}

// Bytes that do not compress make a stream that is longer than they are.
TEST_F(LongRoundTrip, codecs_of_noise) {
  TestRandom random;
  random.fill({plain_.data(), size()});
  for (const Codec codec : {Codec::none, Codec::lz77, Codec::zstd}) {
    Message message;
    message.operation = Operation::compress;
    message.codec = codec;
    message.output_capacity = sealed_.size();
    const MessageResult stream = run(message, plain_, size(), sealed_);
    ASSERT_TRUE(stream.ok) << stream.detail;
    EXPECT_GE(stream.output_size, size() + (codec == Codec::none ? 0 : 1));
    message.operation = Operation::decompress;
    message.output_capacity = size();
    const MessageResult plain = run(message, sealed_, stream.output_size, back_);
    ASSERT_TRUE(plain.ok) << plain.detail;
    expect_plain_is_back();
  }
}

TEST_F(LongRoundTrip, ciphers) {
  payload_.add_key(CipherSuite::aes_256_gcm, Bytes(32, 1));
  payload_.add_key(BlockCipher::aes_256, CipherMode::ctr, Bytes(32, 2));
  payload_.add_key(BlockCipher::aes_128, CipherMode::cbc, Bytes(16, 3));
  payload_.add_key(BlockCipher::aes_192, CipherMode::ofb, Bytes(24, 4));
  payload_.add_key(CipherSuite::aes_256_ctr, Bytes(key_size_bytes(CipherSuite::aes_256_ctr), 5));
  for (std::uint32_t key = 0; key < payload_.key_table.size(); ++key) {
    const KeyUse& use = payload_.key_table[key].use;
    const std::uint64_t tag_size = use.kind == KeyKind::suite ? tag_size_bytes(use.suite) : 0;
    Message message;
    message.operation = Operation::encrypt;
    message.key_index = key;
    message.output_capacity = size() + tag_size;
    const MessageResult sealed = run(message, plain_, size(), sealed_);
    ASSERT_TRUE(sealed.ok) << sealed.detail;
    ASSERT_EQ(sealed.output_size, size() + tag_size);
    message.operation = Operation::decrypt;
    message.output_capacity = size();
    const MessageResult plain = run(message, sealed_, size() + tag_size, back_);
    ASSERT_TRUE(plain.ok) << plain.detail;
    ASSERT_EQ(plain.output_size, size());
    expect_plain_is_back();
    if (tag_size == 0) continue;
    // The last bit of the longest message is under the tag.
    sealed_.data()[size() - 1] ^= 1;
    EXPECT_EQ(run(message, sealed_, size() + tag_size, back_).error, ErrorCode::tampered);
  }
}

}  // namespace
}  // namespace nacre::engine
