// SPDX-License-Identifier: Apache-2.0
// Encryption and checksums as messages of payloads: every mode, split and side by side, in place.
#include <gtest/gtest.h>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/engine.h"
#include "tests/gpu_engine/all_suites.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"
#include "tests/gpu_engine/test_payload.h"

namespace nacre::engine {
namespace {

std::unique_ptr<Engine> make_cipher_engine(unsigned thread_count) {
  return Engine::create({.choice = test_engine_choice(), .thread_count = thread_count}).value();
}

BlockCipher cipher_number(std::size_t number) {
  return static_cast<BlockCipher>(number % 5);
}
CipherMode mode_number(std::size_t number) {
  return static_cast<CipherMode>(number % 4);
}

// One message to a cipher alone, as the definition has it.
Bytes crypt_alone(BlockCipher cipher, CipherMode mode, ByteView key, Direction direction,
                  const CipherIv& iv, ByteView in) {
  Bytes out(in.size());
  CipherKey::create(cipher, mode, key, CryptoImplementation::openssl)
      .value()
      ->crypt(direction, iv, in, out);
  return out;
}

TEST(EngineCiphers, mixtures_of_ciphers_modes_lengths_and_directions_give_what_each_gives_alone) {
  TestRandom random;
  for (const unsigned thread_count : {1u, 3u}) {
    const auto engine = make_cipher_engine(thread_count);
    TestPayload payload(*engine, 8u << 20);
    std::vector<Bytes> expected;
    for (std::size_t i = 0; i < 200; ++i) {
      const BlockCipher cipher = cipher_number(random.below(5));
      const CipherMode mode = mode_number(random.below(4));
      const Direction direction = random.below(2) == 0 ? Direction::encrypt : Direction::decrypt;
      const Bytes key = random.bytes(key_size_bytes(cipher));
      std::size_t size = random.below(std::size_t{1} << (1 + random.below(15)));
      // Some are long enough to be split.
      if (i % 50 == 49) size = 300000 + random.below(500000);
      if (takes_whole_blocks(mode)) size = round_up(size, block_size_bytes(cipher));
      const Bytes in = random.bytes(size);
      Message& message = payload.add(
          direction == Direction::encrypt ? Operation::encrypt : Operation::decrypt, in, size);
      random.fill(message.iv);
      message.key_index = payload.get().add_key(cipher, mode, key);
      expected.push_back(crypt_alone(cipher, mode, key, direction, message.iv, in));
    }
    engine->run(payload.get());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(payload.result(i).ok) << i << ": " << payload.result(i).detail;
      ASSERT_EQ(payload.result(i).output_size, expected[i].size());
      ASSERT_TRUE(std::ranges::equal(payload.output(i), expected[i])) << i;
    }
  }
}

// Input and output are one memory, and the message is cut between the workers.
TEST(EngineCiphers, long_messages_split_in_place) {
  TestRandom random;
  const auto engine = make_cipher_engine(4);
  for (const BlockCipher cipher : {BlockCipher::aes_128, BlockCipher::aes_256, BlockCipher::des}) {
    for (const CipherMode mode : {CipherMode::ecb, CipherMode::cbc, CipherMode::ctr}) {
      const std::size_t size =
          (cipher == BlockCipher::des ? 600000u : 8u << 20) + (takes_whole_blocks(mode) ? 16u : 5u);
      const Bytes in = random.bytes(size);
      const Bytes key = random.bytes(key_size_bytes(cipher));
      Arena memory = engine->allocate(size).value();
      std::copy(in.begin(), in.end(), memory.data());
      Payload payload;
      payload.input = memory.data();
      payload.output = memory.data();
      payload.input_size = payload.output_size = size;
      Message& message = payload.messages.emplace_back();
      message.operation = Operation::decrypt;
      message.key_index = payload.add_key(cipher, mode, key);
      message.input_size = message.output_capacity = size;
      random.fill(message.iv);
      engine->run(payload);
      ASSERT_TRUE(payload.results[0].ok) << payload.results[0].detail;
      EXPECT_EQ(payload.results[0].output_size, size);
      EXPECT_TRUE(
          std::ranges::equal(ByteView(memory.data(), size),
                             crypt_alone(cipher, mode, key, Direction::decrypt, message.iv, in)));
    }
  }
}

TEST(EngineCiphers, split_counters_wrap_as_whole_ones_do) {
  TestRandom random;
  const auto engine = make_cipher_engine(4);
  const Bytes key = random.bytes(32);
  const Bytes in = random.bytes((8u << 20) + 1);
  TestPayload payload(*engine, in.size());
  Message& message = payload.add(Operation::encrypt, in, in.size());
  message.iv.fill(0xff);
  message.iv[13] = 0xf8;
  message.key_index = payload.get().add_key(BlockCipher::aes_256, CipherMode::ctr, key);
  engine->run(payload.get());
  ASSERT_TRUE(payload.result(0).ok);
  EXPECT_TRUE(std::ranges::equal(
      payload.output(0),
      crypt_alone(BlockCipher::aes_256, CipherMode::ctr, key, Direction::encrypt, message.iv, in)));
}

TEST(EngineCiphers, suites_encrypt_and_decrypt_with_additional_data) {
  TestRandom random;
  const auto engine = make_cipher_engine(3);
  std::vector<Bytes> plains;
  std::vector<Bytes> keys;
  TestPayload sealing(*engine, 4u << 20);
  for (const CipherSuite suite : all_suites()) {
    for (const std::size_t size : {0u, 1u, 500u, 70000u}) {
      plains.push_back(random.bytes(round_up(size, plain_unit_bytes(suite))));
      keys.push_back(random.bytes(key_size_bytes(suite)));
      Message& message = sealing.add(Operation::encrypt, plains.back(),
                                     plains.back().size() + tag_size_bytes(suite));
      store_le(message.iv.data() + 4, random.next());
      message.key_index = sealing.get().add_key(suite, keys.back());
      sealing.set_aad(message, random.bytes(size % 77));
    }
  }
  engine->run(sealing.get());
  for (const bool spoil : {false, true}) {
    TestPayload opening(*engine, 4u << 20);
    for (std::size_t i = 0; i < plains.size(); ++i) {
      ASSERT_TRUE(sealing.result(i).ok) << sealing.result(i).detail;
      const Message& sealed = sealing.get().messages[i];
      Bytes in(sealing.output(i).begin(), sealing.output(i).end());
      const Bytes aad(sealing.get().input + sealed.aad_offset,
                      sealing.get().input + sealed.aad_offset + sealed.aad_size);
      if (spoil) in[random.below(in.size())] ^= 0x20;
      Message& message = opening.add(Operation::decrypt, in, plains[i].size());
      message.iv = sealed.iv;
      message.key_index = opening.get().add_key(all_suites()[i / 4], keys[i]);
      opening.set_aad(message, aad);
    }
    engine->run(opening.get());
    for (std::size_t i = 0; i < plains.size(); ++i) {
      ASSERT_EQ(opening.result(i).ok, !spoil) << i;
      if (spoil) {
        EXPECT_EQ(opening.result(i).error, ErrorCode::tampered);
        const Message& message = opening.get().messages[i];
        const ByteView left(opening.get().output + message.output_offset, plains[i].size());
        EXPECT_TRUE(std::ranges::all_of(left, [](Byte b) { return b == 0; }));
      } else {
        EXPECT_TRUE(std::ranges::equal(opening.output(i), plains[i]));
      }
    }
  }
}

TEST(EngineCiphers, bad_messages_are_refused_and_fail_no_neighbour) {
  TestRandom random;
  for (const unsigned thread_count : {1u, 3u}) {
    const auto engine = make_cipher_engine(thread_count);
    const Bytes key = random.bytes(32);
    const Bytes plain = random.bytes(4096);
    TestPayload payload(*engine, 16u << 20);
    auto& keys = payload.get();
    std::vector<std::pair<std::size_t, ErrorCode>> bad;
    const auto add = [&](Operation operation, std::uint32_t key_index) -> Message& {
      Message& message = payload.add(operation, plain, plain.size() + 32);
      message.key_index = key_index;
      return message;
    };
    const std::uint32_t cbc = keys.add_key(BlockCipher::aes_256, CipherMode::cbc, key);
    const std::uint32_t ctr = keys.add_key(BlockCipher::aes_256, CipherMode::ctr, key);
    const std::uint32_t gcm = keys.add_key(CipherSuite::aes_256_gcm, key);
    const std::uint32_t des =
        keys.add_key(CipherSuite::des_cbc, random.bytes(key_size_bytes(CipherSuite::des_cbc)));
    const std::uint32_t short_key =
        keys.add_key(BlockCipher::aes_256, CipherMode::cbc, ByteView(key).first(31));
    const std::uint32_t no_cipher = keys.add_key(BlockCipher{77}, CipherMode::cbc, key);
    const std::uint32_t no_suite = keys.add_key(CipherSuite{77}, key);
    const std::uint32_t no_rsa = keys.add_rsa_private_key(key);
    const auto expect = [&](ErrorCode error) {
      bad.emplace_back(payload.get().messages.size() - 1, error);
    };
    for (int i = 0; i < 20; ++i)
      add(Operation::encrypt, i % 2 == 0 ? cbc : ctr);
    add(Operation::encrypt, cbc).input_size = 4095;
    expect(ErrorCode::invalid_argument);
    add(Operation::decrypt, cbc).input_size = 1;
    expect(ErrorCode::invalid_argument);
    add(Operation::encrypt, cbc).output_capacity = 4095;
    expect(ErrorCode::range);
    add(Operation::encrypt, ctr).output_capacity = 0;
    expect(ErrorCode::range);
    add(Operation::encrypt, gcm).output_capacity = 4096 + 15;
    expect(ErrorCode::range);
    add(Operation::decrypt, gcm).input_size = 15;
    expect(ErrorCode::corrupt);
    add(Operation::decrypt, gcm);
    expect(ErrorCode::tampered);
    add(Operation::encrypt, gcm).aad_offset = payload.get().input_size + 1;
    expect(ErrorCode::invalid_argument);
    add(Operation::encrypt, gcm).aad_size = ~0ull;
    expect(ErrorCode::invalid_argument);
    add(Operation::encrypt, des).iv[3] = 1;
    expect(ErrorCode::invalid_argument);
    add(Operation::encrypt, des).input_size = 4095;
    expect(ErrorCode::invalid_argument);
    for (const std::uint32_t index : {short_key, no_cipher, no_suite, no_rsa, 1000u}) {
      add(Operation::encrypt, index);
      expect(ErrorCode::invalid_argument);
    }
    // Keys of one kind do no other's work.
    add(Operation::seal, cbc);
    expect(ErrorCode::invalid_argument);
    add(Operation::reseal, gcm).new_key_index = cbc;  // found before the record is read
    expect(ErrorCode::invalid_argument);
    add(Operation::rsa_private, gcm);
    expect(ErrorCode::invalid_argument);
    add(Operation::rsa_public, gcm);
    expect(ErrorCode::invalid_argument);
    add(Operation::checksum, 0).checksum = Checksum{9};
    expect(ErrorCode::unsupported);
    add(Operation::encrypt, ctr).input_offset = ~0ull;
    expect(ErrorCode::invalid_argument);
    add(Operation::checksum, 0).input_size = ~0ull;
    expect(ErrorCode::invalid_argument);
    for (int i = 0; i < 20; ++i)
      add(Operation::encrypt, i % 2 == 0 ? cbc : ctr);

    engine->run(payload.get());
    std::size_t next_bad = 0;
    for (std::size_t i = 0; i < payload.get().messages.size(); ++i) {
      const MessageResult& result = payload.result(i);
      if (next_bad < bad.size() && bad[next_bad].first == i) {
        ASSERT_FALSE(result.ok) << i;
        EXPECT_EQ(result.error, bad[next_bad].second) << i << ": " << result.detail;
        EXPECT_STRNE(result.detail, "") << i;
        ++next_bad;
        continue;
      }
      ASSERT_TRUE(result.ok) << i << ": " << result.detail;
      const CipherMode mode = payload.get().key_table[payload.get().messages[i].key_index].use.mode;
      EXPECT_TRUE(std::ranges::equal(
          payload.output(i),
          crypt_alone(BlockCipher::aes_256, mode, key, Direction::encrypt, {}, plain)));
    }
    EXPECT_EQ(next_bad, bad.size());
  }
}

TEST(EngineCiphers, empty_messages_are_fine_in_every_mode) {
  const auto engine = make_cipher_engine(2);
  TestPayload payload(*engine, 4096);
  for (std::size_t cipher = 0; cipher < 5; ++cipher) {
    for (std::size_t mode = 0; mode < 4; ++mode) {
      for (const Operation operation : {Operation::encrypt, Operation::decrypt}) {
        const Bytes key(key_size_bytes(cipher_number(cipher)));
        payload.add(operation, {}, 0).key_index =
            payload.get().add_key(cipher_number(cipher), mode_number(mode), key);
      }
    }
  }
  engine->run(payload.get());
  for (std::size_t i = 0; i < payload.get().messages.size(); ++i) {
    EXPECT_TRUE(payload.result(i).ok) << payload.result(i).detail;
    EXPECT_EQ(payload.result(i).output_size, 0u);
  }
}

TEST(EngineChecksum, both_crcs_of_all_lengths_whole_and_split) {
  TestRandom random;
  for (const unsigned thread_count : {1u, 4u}) {
    const auto engine = make_cipher_engine(thread_count);
    TestPayload payload(*engine, 40u << 20);
    std::vector<Bytes> inputs;
    for (const std::size_t size : {0u, 1u, 4095u, 65536u, 131073u, 3u << 20, (9u << 20) + 7}) {
      for (const Checksum checksum : {Checksum::crc32, Checksum::crc32c}) {
        inputs.push_back(random.bytes(size));
        payload.add(Operation::checksum, inputs.back(), 0).checksum = checksum;
      }
    }
    engine->run(payload.get());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_TRUE(payload.result(i).ok);
      EXPECT_EQ(payload.result(i).crc32, i % 2 == 0 ? crc32_reference(0, inputs[i]) : 0);
      EXPECT_EQ(payload.result(i).crc32c, i % 2 == 1 ? crc32c_reference(0, inputs[i]) : 0);
    }
  }
}

}  // namespace
}  // namespace nacre::engine
