// SPDX-License-Identifier: Apache-2.0
// The AES kernels in plain modes against the CPU's, and NIST's vectors.
#include "gpu_engine/cipher/block_cipher.h"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/response_file.h"

namespace nacre::engine::cuda {
namespace {

struct Mode {
  CryptMode mode;
  CipherMode cpu_mode;
  const char* name;
};
constexpr Mode modes[] = {{CryptMode::ecb, CipherMode::ecb, "ecb"},
                          {CryptMode::cbc, CipherMode::cbc, "cbc"},
                          {CryptMode::ofb, CipherMode::ofb, "ofb"},
                          {CryptMode::ctr, CipherMode::ctr, "ctr"}};

BlockCipher cipher_of(std::size_t key_size) {
  return key_size == 16   ? BlockCipher::aes_128
         : key_size == 24 ? BlockCipher::aes_192
                          : BlockCipher::aes_256;
}

RawKey raw_key(ByteView key) {
  RawKey raw = {};
  std::copy(key.begin(), key.end(), raw.bytes);
  raw.cipher_key_size = static_cast<std::uint32_t>(key.size());
  raw.form = KeyForm::block_cipher;
  return raw;
}

// A message with offsets where the task will have addresses.
struct PlannedMessage {
  std::size_t in, out, size;
  std::uint32_t key;
  CipherIv iv;
};

// Runs messages on the device, out of arena and, in place, into it.
Bytes run(const Mode& mode, Direction direction, const Bytes& arena,
          const std::vector<PlannedMessage>& messages, const std::vector<Bytes>& keys) {
  std::vector<RawKey> raw_keys;
  for (const Bytes& key : keys)
    raw_keys.push_back(raw_key(key));
  const DeviceArray<RawKey> d_keys(raw_keys);
  const DeviceArray<CipherKeyGroup> d_expanded(cipher_key_group_count(keys.size()));
  const DeviceArray<Byte> d_arena(arena);
  std::vector<CryptTask> tasks;
  std::uint64_t total_bytes = 0;
  for (const PlannedMessage& message : messages) {
    CryptTask task = {
        d_arena.data() + message.in, d_arena.data() + message.out, message.size, message.key, {}};
    std::copy(message.iv.begin(), message.iv.end(), task.iv);
    tasks.push_back(task);
    total_bytes += message.size;
  }
  const auto count = static_cast<std::uint32_t>(tasks.size());
  const DeviceArray<CryptTask> d_tasks(tasks);
  const DeviceArray<Byte> d_workspace(crypt_workspace_size(count, total_bytes));
  const KeyDirections directions =
      direction == Direction::encrypt || mode.mode == CryptMode::ctr || mode.mode == CryptMode::ofb
          ? KeyDirections::encrypt
          : KeyDirections::both;
  EXPECT_EQ(expand_keys(d_keys.data(), static_cast<std::uint32_t>(keys.size()), directions,
                        {d_expanded.data(), nullptr}, nullptr),
            cudaSuccess);
  EXPECT_EQ(
      crypt(mode.mode,
            direction == Direction::encrypt ? CryptDirection::encrypt : CryptDirection::decrypt,
            d_tasks.data(), count, total_bytes, d_expanded.data(), d_workspace.data(), nullptr),
      cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return d_arena.copy();
}

class CudaCipherModes : public CudaTest {};

TEST_F(CudaCipherModes, nist_vectors_come_out) {
  int seen = 0;
  for (const ResponseCase& test : read_response_file("block_ciphers_nist.rsp", "Cipher")) {
    for (const Mode& mode : modes) {
      const Bytes key = test["Key"];
      const std::string name = "aes-" + std::to_string(key.size() * 8) + "-" + mode.name;
      if (test.fields.at("Cipher") != name) continue;
      SCOPED_TRACE(name);
      ++seen;
      const Bytes plain = test["PT"], cipher = test["CT"], given_iv = test["IV"];
      PlannedMessage message = {0, plain.size(), plain.size(), 0, {}};
      std::copy(given_iv.begin(), given_iv.end(), message.iv.begin());
      for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        const bool encrypts = direction == Direction::encrypt;
        Bytes arena = encrypts ? plain : cipher;
        arena.resize(2 * plain.size());
        const Bytes result = run(mode, direction, arena, {message}, {key});
        EXPECT_EQ(to_hex(ByteView(result).subspan(plain.size())),
                  test.fields.at(encrypts ? "CT" : "PT"));
      }
    }
  }
  EXPECT_EQ(seen, 12);
}

// Sizes, addresses and keys mix; every third message is worked on in place; one key is none.
TEST_F(CudaCipherModes, random_mixtures_match_the_cpu) {
  TestRandom random;
  for (const Mode& mode : modes) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      SCOPED_TRACE(std::string(mode.name) +
                   (direction == Direction::encrypt ? " encrypt" : " decrypt"));
      std::vector<Bytes> keys;
      for (int i = 0; i < 9; ++i)
        keys.push_back(random.bytes(16 + 8 * (i % 3)));
      RangeAllocator ranges(random);
      std::vector<PlannedMessage> messages;
      for (std::size_t i = 0; i < 200 / test_part(); ++i) {
        std::size_t size = i == 7 ? (3u << 20) / test_part() + 5 : random_size(random);
        if (takes_whole_blocks(mode.cpu_mode)) size = size / 16 * 16;
        const std::size_t in = ranges.take(size);
        const std::size_t out = i % 3 == 0 ? in : ranges.take(size);
        PlannedMessage message = {in, out, size, static_cast<std::uint32_t>(random.below(9)), {}};
        if (i % 50 == 49) message.key = no_key;
        random.fill(message.iv);
        // Counters that carry far.
        if (i % 5 == 0) std::fill(message.iv.begin() + 1, message.iv.end() - 1, Byte{0xff});
        messages.push_back(message);
      }
      const Bytes arena = random.bytes(ranges.used());
      Bytes expected = arena;
      for (const PlannedMessage& message : messages) {
        const MutableByteView out = MutableByteView(expected).subspan(message.out, message.size);
        if (message.key == no_key) {
          std::fill(out.begin(), out.end(), Byte{0});
          continue;
        }
        const Bytes& key = keys[message.key];
        CipherKey::create(cipher_of(key.size()), mode.cpu_mode, key)
            .value()
            ->crypt(direction, message.iv, ByteView(arena).subspan(message.in, message.size), out);
      }
      const Bytes result = run(mode, direction, arena, messages, keys);
      for (std::size_t i = 0; i < messages.size(); ++i) {
        const PlannedMessage& message = messages[i];
        ASSERT_TRUE(std::equal(&result[message.out], &result[message.out] + message.size,
                               &expected[message.out]))
            << "message " << i << " of " << message.size << " bytes at " << message.in << " to "
            << message.out;
      }
      EXPECT_TRUE(result == expected) << "bytes beside the messages changed";
    }
  }
}

// Each with a key of its own: units of 16 blocks and their neighbours.
TEST_F(CudaCipherModes, many_short_messages_match_the_cpu) {
  TestRandom random;
  for (const Mode& mode : modes) {
    SCOPED_TRACE(mode.name);
    std::vector<Bytes> keys;
    std::vector<PlannedMessage> messages;
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < 3000 / test_part(); ++i) {
      keys.push_back(random.bytes(16 + 8 * random.below(3)));
      const std::size_t size = 16 * (i % 4 == 3 ? random.below(40) : 16);
      messages.push_back({used, used, size, i, {}});
      random.fill(messages.back().iv);
      used += size;
    }
    const Bytes arena = random.bytes(used);
    Bytes expected = arena;
    for (const PlannedMessage& message : messages) {
      const Bytes& key = keys[message.key];
      CipherKey::create(cipher_of(key.size()), mode.cpu_mode, key)
          .value()
          ->crypt(Direction::decrypt, message.iv, ByteView(arena).subspan(message.in, message.size),
                  MutableByteView(expected).subspan(message.out, message.size));
    }
    EXPECT_TRUE(run(mode, Direction::decrypt, arena, messages, keys) == expected);
  }
}

TEST_F(CudaCipherModes, no_tasks_are_valid) {
  EXPECT_EQ(
      crypt(CryptMode::ctr, CryptDirection::encrypt, nullptr, 0, 0, nullptr, nullptr, nullptr),
      cudaSuccess);
}

}  // namespace
}  // namespace nacre::engine::cuda
