// SPDX-License-Identifier: Apache-2.0
// Random payloads of every operation, good and bad, run by two engines and compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/engine.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {

struct Item {
  Message message;
  Bytes input;
  Bytes aad;
  KeyUse use;
  Bytes key;
  KeyUse new_use;
  Bytes new_key;
};

inline constexpr VolumeId volume_id = {1, 2, 3};

// A payload that owns its memory, in arenas of an engine or in plain vectors.
class Built {
 public:
  Built(const std::vector<Item>& items, Engine* allocator, TestRandom& random) {
    std::size_t input_size = 1;
    std::size_t output_size = 1;
    for (const Item& item : items) {
      input_size += item.input.size() + item.aad.size() + 64;
      output_size += item.message.output_capacity + 64;
    }
    if (allocator != nullptr) {
      input_arena_ = allocator->allocate(input_size).value();
      output_arena_ = allocator->allocate(output_size).value();
      payload_.input = input_arena_.data();
      payload_.output = output_arena_.data();
    } else {
      input_bytes_.resize(input_size);
      output_bytes_.resize(output_size);
      payload_.input = input_bytes_.data();
      payload_.output = output_bytes_.data();
    }
    payload_.input_size = input_size;
    payload_.output_size = output_size;
    payload_.volume_id = volume_id;
    std::fill_n(payload_.output, output_size, Byte{0xa5});
    std::size_t in = 0;
    std::size_t out = 0;
    for (const Item& item : items) {
      Message message = item.message;
      in += random.below(40);
      out += random.below(40);
      message.input_offset += in;
      message.input_size = item.input.size();
      std::ranges::copy(item.input, const_cast<Byte*>(payload_.input) + in);
      in += item.input.size();
      message.aad_offset = in;
      message.aad_size = item.aad.size();
      std::ranges::copy(item.aad, const_cast<Byte*>(payload_.input) + in);
      in += item.aad.size();
      message.output_offset = out;
      out += message.output_capacity;
      if (!item.key.empty()) message.key_index = payload_.add_key(item.use, item.key);
      if (!item.new_key.empty())
        message.new_key_index = payload_.add_key(item.new_use, item.new_key);
      payload_.messages.push_back(message);
    }
  }

  Payload& get() { return payload_; }
  const MessageResult& result(std::size_t i) const { return payload_.results.at(i); }
  ByteView output(std::size_t i) const {
    return {payload_.output + payload_.messages[i].output_offset, result(i).output_size};
  }
  ByteView room(std::size_t i) const {
    return {payload_.output + payload_.messages[i].output_offset,
            payload_.messages[i].output_capacity};
  }

 private:
  Arena input_arena_;
  Arena output_arena_;
  Bytes input_bytes_;
  Bytes output_bytes_;
  Payload payload_;
};

inline constexpr std::array<CipherSuite, 11> suites = {
    CipherSuite::aes_256_gcm,  CipherSuite::aes_192_gcm, CipherSuite::aes_128_gcm,
    CipherSuite::aes_256_ctr,  CipherSuite::aes_192_ctr, CipherSuite::aes_128_ctr,
    CipherSuite::aes_256_cbc,  CipherSuite::aes_192_cbc, CipherSuite::aes_128_cbc,
    CipherSuite::des_ede3_cbc, CipherSuite::des_cbc};
inline constexpr std::array codecs = {Codec::none, Codec::lz77, Codec::lz77,     Codec::zstd,
                                      Codec::rle,  Codec::lzw,  Codec::gdeflate, Codec::huffman};

// Makes items of every operation, good and bad.
class Maker {
 public:
  Maker(Engine& cpu, TestRandom& random) : cpu_(cpu), random_(random) {
    for (int i = 0; i < 4; ++i)
      seeds_.push_back(random.bytes(suite_key_size_bytes_max));
  }

  Item make() {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return seal();
      case 2:
      case 3:
        return spoil(unseal());
      case 4:
        return spoil(reseal());
      case 5:
        return crypt();
      case 6:
        return spoil(suite_crypt());
      case 7:
        return checksum();
      case 8:
        return compress();
      default:
        return spoil(decompress());
    }
  }

  Item seal() {
    Item item;
    item.use.suite = suites[random_.below(suites.size())];
    item.key = key_of(item.use.suite);
    item.input = plain();
    Message& message = item.message;
    message.operation = Operation::seal;
    message.codec = random_.below(8) == 0 ? Codec::automatic : codecs[random_.below(codecs.size())];
    message.level = static_cast<std::int8_t>(random_.below(4));
    message.padding = random_.below(2) == 0 ? Padding::none : Padding::padme;
    message.epoch = static_cast<std::uint32_t>(random_.next());
    message.counter = static_cast<std::uint32_t>(random_.next());
    random_.fill(message.salt);
    random_.fill(message.identity);
    message.output_capacity =
        record_size_bound(item.use.suite, message.padding, item.input.size()) +
        random_.below(3) * 17;
    if (random_.below(30) == 0) message.output_capacity /= 2;
    return item;
  }

  Item unseal() {
    const Item sealed = seal_well();
    Item item;
    item.use = sealed.use;
    item.key = sealed.key;
    item.input = run_one(sealed);
    item.message.operation = Operation::unseal;
    item.message.identity = sealed.message.identity;
    item.message.check_identity = random_.below(2) == 0;
    item.message.output_capacity = sealed.input.size() + (random_.below(3) == 0 ? 100 : 0);
    return item;
  }

  Item reseal() {
    Item item = unseal();
    item.message.operation = Operation::reseal;
    item.new_use.suite = suites[random_.below(suites.size())];
    item.new_key = key_of(item.new_use.suite);
    item.message.padding = random_.below(2) == 0 ? Padding::none : Padding::padme;
    item.message.epoch = 77;
    item.message.counter = static_cast<std::uint32_t>(random_.next());
    random_.fill(item.message.salt);
    item.message.output_capacity =
        record_size_bound(item.new_use.suite, item.message.padding, 2 * item.input.size());
    return item;
  }

  Item crypt() {
    constexpr std::array<BlockCipher, 5> ciphers = {BlockCipher::aes_128, BlockCipher::aes_192,
                                                    BlockCipher::aes_256, BlockCipher::des,
                                                    BlockCipher::des_ede3};
    constexpr std::array<CipherMode, 4> modes = {CipherMode::ecb, CipherMode::cbc, CipherMode::ofb,
                                                 CipherMode::ctr};
    Item item;
    item.use = {.kind = KeyKind::block_cipher,
                .cipher = ciphers[random_.below(5)],
                .mode = modes[random_.below(4)]};
    const Bytes& seed = seeds_[random_.below(seeds_.size())];
    item.key.assign(seed.begin(),
                    seed.begin() + static_cast<std::ptrdiff_t>(key_size_bytes(item.use.cipher)));
    item.input = random_.bytes(size());
    if (takes_whole_blocks(item.use.mode) && random_.below(20) != 0)
      item.input.resize(item.input.size() / 16 * 16);
    item.message.operation = random_.below(2) == 0 ? Operation::encrypt : Operation::decrypt;
    random_.fill(item.message.iv);
    if (random_.below(4) == 0) std::fill(item.message.iv.begin() + 4, item.message.iv.end(), 0xff);
    item.message.output_capacity = item.input.size();
    return item;
  }

  Item suite_crypt() {
    Item item;
    item.use.suite = suites[random_.below(suites.size())];
    item.key = key_of(item.use.suite);
    const std::size_t unit = plain_unit_bytes(item.use.suite);
    item.input = random_.bytes(size() / unit * unit);
    item.aad = random_.bytes(random_.below(3) == 0 ? 0 : random_.below(300));
    item.message.operation = Operation::encrypt;
    random_.fill(MutableByteView(item.message.iv).first(nonce_size_bytes));
    // For these suites a valid nonce is zeros and the counter. Now and then it is not valid.
    if (is_legacy(item.use.suite) && random_.below(10) != 0)
      std::fill_n(item.message.iv.begin(), 4, Byte{0});
    item.message.output_capacity = item.input.size() + tag_size_bytes(item.use.suite);
    if (random_.below(2) == 0 ||
        !is_valid_nonce(item.use.suite, ByteView(item.message.iv).first(nonce_size_bytes)))
      return item;
    item.input = run_one(item);
    item.message.operation = Operation::decrypt;
    item.message.output_capacity = item.input.size() - tag_size_bytes(item.use.suite);
    return item;
  }

  Item checksum() {
    Item item;
    item.input = random_.bytes(size());
    item.message.operation = Operation::checksum;
    item.message.checksum = random_.below(2) == 0 ? Checksum::crc32 : Checksum::crc32c;
    return item;
  }

  Item compress() {
    Item item;
    item.input = plain();
    item.message.operation = Operation::compress;
    item.message.codec = codecs[random_.below(codecs.size())];
    item.message.output_capacity =
        stream_size_bound(item.message.codec, item.input.size()) / (random_.below(10) == 0 ? 3 : 1);
    return item;
  }

  Item decompress() {
    Item item = compress();
    const std::size_t plain_size = item.input.size();
    item.message.output_capacity = stream_size_bound(item.message.codec, plain_size);
    item.input = run_one(item);
    item.message.operation = Operation::decompress;
    item.message.output_capacity = plain_size;
    return item;
  }

 private:
  std::size_t size() {
    switch (random_.below(8)) {
      case 0:
        return random_.below(70);
      case 1:
        return 65536;
      case 2:
        return edge_sizes[random_.below(edge_sizes.size())];
      default:
        return random_.below(70000);
    }
  }
  Bytes plain() { return make_data(data_kinds[random_.below(data_kinds.size())], size(), random_); }
  Bytes key_of(CipherSuite suite) {
    const Bytes& seed = seeds_[random_.below(seeds_.size())];
    return {seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(key_size_bytes(suite))};
  }
  Item seal_well() {
    Item item = seal();
    item.message.output_capacity =
        record_size_bound(item.use.suite, item.message.padding, item.input.size());
    return item;
  }
  Bytes run_one(const Item& item) {
    Built built({item}, nullptr, random_);
    cpu_.run(built.get());
    EXPECT_TRUE(built.result(0).ok) << built.result(0).detail;
    return {built.output(0).begin(), built.output(0).end()};
  }
  // One in four is damaged, or asks for something impossible.
  Item spoil(Item item) {
    switch (random_.below(24)) {
      case 0:
      case 1:
        mutate(item.input, random_);
        break;
      case 2:
        item.message.identity[3] ^= 1;
        item.message.check_identity = true;
        break;
      case 3:
        if (item.key.empty()) break;
        item.key[0] ^= 1;
        break;
      case 4:
        item.message.output_capacity /= 2;
        break;
      case 5:
        item.message.input_offset = 1ull << 40;
        break;
      default:
        break;
    }
    return item;
  }

  Engine& cpu_;
  TestRandom& random_;
  std::vector<Bytes> seeds_;
};

inline bool is_deterministic(const Item& item) {
  const Operation operation = item.message.operation;
  return operation != Operation::seal && operation != Operation::compress;
}

// Compares the results of first with the cpu's results for the same items.
inline void expect_same(const std::vector<Item>& items, const Built& first, const Built& cpu,
                        Engine& judge, TestRandom& random) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const MessageResult& got = first.result(i);
    const MessageResult& want = cpu.result(i);
    SCOPED_TRACE(testing::Message()
                 << "message " << i << ", operation " << static_cast<int>(item.message.operation)
                 << ", suite " << to_string(item.use.suite) << ", " << item.input.size()
                 << " bytes, codec " << to_string(item.message.codec));
    if (item.message.operation == Operation::compress && got.ok != want.ok) {
      // Streams of two encoders differ in length, so one may fit where the other does not.
      EXPECT_LT(item.message.output_capacity,
                stream_size_bound(item.message.codec, item.input.size()));
      continue;
    }
    ASSERT_EQ(got.ok, want.ok) << got.detail << " / " << want.detail;
    if (!got.ok) {
      EXPECT_EQ(got.error, want.error);
      EXPECT_STREQ(got.detail, want.detail);
      const Operation operation = item.message.operation;
      if (operation == Operation::unseal || operation == Operation::reseal ||
          operation == Operation::decrypt) {
        // No plain byte of what is not good.
        ASSERT_TRUE(std::ranges::all_of(first.room(i), [](Byte b) { return b == 0xa5 || b == 0; }));
      }
      continue;
    }
    if (is_deterministic(item)) {
      ASSERT_EQ(got.output_size, want.output_size);
      ASSERT_TRUE(std::ranges::equal(first.output(i), cpu.output(i)));
      EXPECT_EQ(got.crc32, want.crc32);
      EXPECT_EQ(got.crc32c, want.crc32c);
      EXPECT_EQ(got.codec, want.codec);
      EXPECT_EQ(got.identity, want.identity);
      // Nothing is written behind an output.
      for (const Byte b : first.room(i).subspan(got.output_size))
        ASSERT_EQ(b, 0xa5);
      continue;
    }
    Item back = item;
    back.message.operation =
        item.message.operation == Operation::seal ? Operation::unseal : Operation::decompress;
    back.message.codec = got.codec;
    back.message.check_identity = true;
    back.message.output_capacity = item.input.size();
    back.input.assign(first.output(i).begin(), first.output(i).end());
    Built opened({back}, nullptr, random);
    judge.run(opened.get());
    ASSERT_TRUE(opened.result(0).ok) << opened.result(0).detail;
    ASSERT_TRUE(std::ranges::equal(opened.output(0), item.input));
  }
}

}  // namespace nacre::engine
