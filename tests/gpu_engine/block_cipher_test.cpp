// SPDX-License-Identifier: Apache-2.0
// Ciphers without authentication keep their contract.
#include "gpu_engine/cipher/block_cipher.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "gpu_engine/cipher/block_cipher_parts.h"
#include "tests/gpu_engine/allocation_faults.h"
#include "tests/gpu_engine/crypto_implementations.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

constexpr std::array all_ciphers = {BlockCipher::aes_128, BlockCipher::aes_192,
                                    BlockCipher::aes_256, BlockCipher::des, BlockCipher::des_ede3};
constexpr std::array all_modes = {CipherMode::ecb, CipherMode::cbc, CipherMode::ofb,
                                  CipherMode::ctr};

struct BlockAlgorithm {
  BlockCipher cipher;
  CipherMode mode;
};

std::vector<BlockAlgorithm> all_algorithms() {
  std::vector<BlockAlgorithm> all;
  for (const BlockCipher cipher : all_ciphers) {
    for (const CipherMode mode : all_modes)
      all.push_back({cipher, mode});
  }
  return all;
}

class BlockCiphers : public testing::TestWithParam<BlockAlgorithm> {
 protected:
  BlockCipher cipher() const { return GetParam().cipher; }
  CipherMode mode() const { return GetParam().mode; }

  std::shared_ptr<const CipherKey> key(
      ByteView raw, CryptoImplementation implementation = CryptoImplementation::automatic) const {
    return CipherKey::create(cipher(), mode(), raw, implementation).value();
  }
  // The size, or the next one that the mode takes.
  std::size_t valid(std::size_t size) const {
    return takes_whole_blocks(mode()) ? round_up(size, block_size_bytes(cipher())) : size;
  }
  CipherIv random_iv() {
    CipherIv iv;
    random_.fill(iv);
    return iv;
  }

  TestRandom random_;
};

INSTANTIATE_TEST_SUITE_P(All, BlockCiphers, testing::ValuesIn(all_algorithms()),
                         [](const auto& test) {
                           std::string name = std::string(to_string(test.param.cipher)) + "_" +
                                              std::string(to_string(test.param.mode));
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST_P(BlockCiphers, decrypts_what_it_encrypted_apart_and_in_place) {
  for (const CryptoImplementation implementation : crypto_implementations()) {
    const auto key = this->key(random_.bytes(key_size_bytes(cipher())), implementation);
    for (const std::size_t edge : edge_sizes) {
      const std::size_t size = valid(std::min<std::size_t>(edge, 70000));
      const CipherIv iv = random_iv();
      const Bytes plain = random_.bytes(size);
      Bytes sealed(size);
      key->crypt(Direction::encrypt, iv, plain, sealed);
      EXPECT_TRUE(size < 16 || sealed != plain);
      Bytes opened(size);
      key->crypt(Direction::decrypt, iv, sealed, opened);
      ASSERT_TRUE(opened == plain) << size;
      Bytes place = plain;
      key->crypt(Direction::encrypt, iv, place, place);
      ASSERT_TRUE(place == sealed) << size;
      key->crypt(Direction::decrypt, iv, place, place);
      ASSERT_TRUE(place == plain) << size;
    }
  }
}

TEST_P(BlockCiphers, all_implementations_give_the_same_bytes) {
  for (int round = 0; round < 60; ++round) {
    const Bytes raw = random_.bytes(key_size_bytes(cipher()));
    const std::size_t size = valid(random_.below(std::size_t{1} << (1 + random_.below(17))));
    const Bytes in = random_.bytes(size);
    const CipherIv iv = random_iv();
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      Bytes expected(size);
      key(raw, CryptoImplementation::openssl)->crypt(direction, iv, in, expected);
      for (const CryptoImplementation implementation : crypto_implementations()) {
        Bytes out(size);
        key(raw, implementation)->crypt(direction, iv, in, out);
        ASSERT_TRUE(out == expected) << "size " << size;
      }
    }
  }
}

TEST_P(BlockCiphers, one_key_serves_many_threads) {
  const auto key = this->key(random_.bytes(key_size_bytes(cipher())));
  const std::size_t size = valid(3001);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Bytes plain(size, static_cast<Byte>(t));
      Bytes sealed(size);
      Bytes opened(size);
      for (std::uint32_t i = 0; i < 50; ++i) {
        CipherIv iv = {};
        store_le(iv.data(), i);
        key->crypt(Direction::encrypt, iv, plain, sealed);
        key->crypt(Direction::decrypt, iv, sealed, opened);
        EXPECT_TRUE(opened == plain);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST_P(BlockCiphers, refuses_keys_of_another_size) {
  const std::size_t size = key_size_bytes(cipher());
  for (const std::size_t wrong : {std::size_t{0}, size - 1, size + 1, 2 * size}) {
    for (const CryptoImplementation implementation : crypto_implementations())
      EXPECT_EQ(error_of(CipherKey::create(cipher(), mode(), Bytes(wrong), implementation)),
                ErrorCode::invalid_argument);
  }
}

TEST(BlockCipher, refuses_what_is_no_cipher_or_mode) {
  EXPECT_EQ(error_of(CipherKey::create(BlockCipher{5}, CipherMode::cbc, Bytes(16))),
            ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(CipherKey::create(BlockCipher::aes_128, CipherMode{4}, Bytes(16))),
            ErrorCode::invalid_argument);
}

TEST(BlockCipher, des_ignores_the_parity_of_its_keys) {
  TestRandom random;
  for (const BlockCipher cipher : {BlockCipher::des, BlockCipher::des_ede3}) {
    const Bytes raw = random.bytes(key_size_bytes(cipher));
    Bytes other_parity = raw;
    for (Byte& byte : other_parity)
      byte ^= 1;
    const Bytes plain = random.bytes(4096);
    for (const CryptoImplementation implementation : crypto_implementations()) {
      Bytes one(plain.size());
      Bytes other(plain.size());
      CipherKey::create(cipher, CipherMode::ecb, raw, implementation)
          .value()
          ->crypt(Direction::encrypt, {}, plain, one);
      CipherKey::create(cipher, CipherMode::ecb, other_parity, implementation)
          .value()
          ->crypt(Direction::encrypt, {}, plain, other);
      EXPECT_TRUE(one == other);
    }
  }
}

// A counter that comes round to zero within the message: in its last 32 bits, in all, at each byte.
TEST(BlockCipher, counters_carry_into_every_byte) {
  TestRandom random;
  for (const BlockCipher cipher : all_ciphers) {
    const Bytes raw = random.bytes(key_size_bytes(cipher));
    const std::size_t block = block_size_bytes(cipher);
    const Bytes in = random.bytes(100 * block + 3);
    for (std::size_t ones = 0; ones <= block; ++ones) {
      CipherIv iv = {};
      for (std::size_t i = block - ones; i < block; ++i)
        iv[i] = 0xff;
      if (ones > 0) iv[block - 1] = static_cast<Byte>(0xff - random.below(90));
      const auto run = [&](CryptoImplementation implementation) {
        Bytes out(in.size());
        CipherKey::create(cipher, CipherMode::ctr, raw, implementation)
            .value()
            ->crypt(Direction::encrypt, iv, in, out);
        return out;
      };
      const Bytes expected = run(CryptoImplementation::openssl);
      for (const CryptoImplementation implementation : crypto_implementations())
        ASSERT_TRUE(run(implementation) == expected) << ones << " bytes of ones";
    }
  }
}

TEST(BlockCipher, serial_streams_of_any_mixture_give_what_each_gives_alone) {
  TestRandom random;
  for (const std::size_t count : {1u, 2u, 15u, 16u, 17u, 40u, 100u}) {
    for (const bool in_place : {false, true}) {
      std::vector<std::shared_ptr<const CipherKey>> keys;
      std::vector<Bytes> plains;
      std::vector<Bytes> outs;
      std::vector<SerialStream> streams;
      for (std::size_t i = 0; i < count; ++i) {
        // Mostly one cipher, so that lanes fill; or all of them.
        const BlockCipher cipher = all_ciphers[count == 40 ? random.below(5) : count % 5];
        const CipherMode mode = random.below(2) == 0 ? CipherMode::cbc : CipherMode::ofb;
        const auto implementations = crypto_implementations();
        const CryptoImplementation implementation =
            count == 17 ? implementations[random.below(implementations.size())]
                        : CryptoImplementation::automatic;
        keys.push_back(
            CipherKey::create(cipher, mode, random.bytes(key_size_bytes(cipher)), implementation)
                .value());
        std::size_t size = random.below(std::size_t{1} << (1 + random.below(15)));
        if (takes_whole_blocks(mode)) size = round_up(size, 16);
        plains.push_back(random.bytes(size));
        outs.push_back(in_place ? plains.back() : Bytes(size));
      }
      for (std::size_t i = 0; i < count; ++i) {
        CipherIv iv;
        random.fill(iv);
        streams.push_back(
            {.key = keys[i].get(), .in = in_place ? outs[i] : plains[i], .out = outs[i], .iv = iv});
      }
      const std::vector<SerialStream> before = streams;
      crypt_serial_streams(streams);
      for (std::size_t i = 0; i < count; ++i) {
        Bytes expected(plains[i].size());
        keys[i]->crypt(Direction::encrypt, before[i].iv, plains[i], expected);
        ASSERT_TRUE(outs[i] == expected) << i << " of " << count << " size " << expected.size();
      }
    }
  }
}

// If jobs stayed in the thread's manager, the next call would finish them, over memory that is
// gone.
TEST(BlockCipher, memory_that_runs_out_leaves_no_job_behind) {
  constexpr std::size_t count = 20;  // more chains than lanes, and each of many pieces
  TestRandom random;
  const auto key =
      CipherKey::create(BlockCipher::aes_256, CipherMode::ofb, random.bytes(32)).value();
  const Bytes plain = random.bytes(40000);
  const CipherIv iv = {1};
  Bytes expected(plain.size());
  key->crypt(Direction::encrypt, iv, plain, expected);
  bool ran_out = true;
  std::size_t allowed = 0;
  for (; ran_out && allowed < 1000; ++allowed) {
    {
      // The outputs, like the memory of the chains, are freed before the next streams run.
      std::vector<Bytes> outs(count, Bytes(plain.size()));
      std::vector<SerialStream> streams;
      for (Bytes& out : outs)
        streams.push_back({.key = key.get(), .in = plain, .out = out, .iv = iv});
      const AllocationFaults faults(allowed);
      try {
        crypt_serial_streams(streams);
        ran_out = false;
      } catch (const std::bad_alloc&) {
      }
    }
    Bytes out(plain.size());
    key->crypt(Direction::encrypt, iv, plain, out);
    ASSERT_TRUE(out == expected) << "after " << allowed << " allocations";
  }
  EXPECT_GT(allowed, 1u) << "memory never ran out";
  EXPECT_FALSE(ran_out);
}

TEST(BlockCipher, lanes_are_there_where_the_processor_has_them) {
  for (const BlockCipher cipher : all_ciphers) {
    EXPECT_GE(serial_lane_count(cipher), 1u);
    EXPECT_LE(serial_lane_count(cipher), 16u);
  }
  EXPECT_EQ(serial_lane_count(BlockCipher::aes_256) > 1, ipsec_mb_is_available());
}

TEST(CounterBlocks, count_as_big_endian_numbers) {
  Bytes counter = from_hex("00000000000000fe");
  Bytes blocks(24);
  write_counter_blocks(counter, blocks);
  EXPECT_EQ(to_hex(blocks), "00000000000000fe00000000000000ff0000000000000100");
  EXPECT_EQ(to_hex(counter), "0000000000000101");
  counter = from_hex("ffffffffffffffff");
  advance_counter(counter, 1);
  EXPECT_EQ(to_hex(counter), "0000000000000000");
  counter = from_hex("00ffffffffffffffffffffffffffffff");
  advance_counter(counter, 0x0123456789abcdef);
  EXPECT_EQ(to_hex(counter), "01000000000000000123456789abcdee");
  counter = from_hex("000000000000000000000000ffffff01");
  advance_counter(counter, UINT64_MAX);
  EXPECT_EQ(to_hex(counter), "000000000000000100000000ffffff00");
}

}  // namespace
}  // namespace nacre::engine
