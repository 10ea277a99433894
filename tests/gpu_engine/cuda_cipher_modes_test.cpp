// SPDX-License-Identifier: Apache-2.0
// The AES kernels in plain modes against the CPU's, and NIST's vectors.
#include "tests/gpu_engine/cuda_messages.h"
#include "tests/gpu_engine/response_file.h"

namespace nacre::engine::cuda {
namespace {

BlockCipher cipher_of(std::size_t key_size) {
  return key_size == 16   ? BlockCipher::aes_128
         : key_size == 24 ? BlockCipher::aes_192
                          : BlockCipher::aes_256;
}

// Runs messages on the device, out of arena and, in place, into it.
Bytes run(const Mode& mode, Direction direction, const Bytes& arena,
          const std::vector<PlannedMessage>& messages, const std::vector<Bytes>& keys) {
  const DeviceArray<RawKey> d_keys(raw_keys(keys));
  const DeviceArray<CipherKeyGroup> d_expanded(cipher_key_group_count(keys.size()));
  const DeviceArray<Byte> d_arena(arena);
  const PlannedTasks planned(messages, d_arena.data());
  const DeviceArray<CryptTask> d_tasks(planned.tasks);
  const DeviceArray<Byte> d_workspace(crypt_workspace_size(planned.count(), planned.total_bytes));
  const KeyDirections directions =
      direction == Direction::encrypt || mode.mode == CryptMode::ctr || mode.mode == CryptMode::ofb
          ? KeyDirections::encrypt
          : KeyDirections::both;
  EXPECT_EQ(expand_keys(d_keys.data(), static_cast<std::uint32_t>(keys.size()), directions,
                        {d_expanded.data(), nullptr}, nullptr),
            cudaSuccess);
  EXPECT_EQ(
      crypt(mode.mode, on_device(direction), d_tasks.data(), planned.count(), planned.total_bytes,
            planned.size_max, d_expanded.data(), d_workspace.data(), nullptr),
      cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return d_arena.copy();
}

// Runs messages on the device, and expects what the cpu makes of them and nothing else.
void expect_the_cpus_bytes(const Mode& mode, Direction direction, const Bytes& arena,
                           const std::vector<PlannedMessage>& messages,
                           const std::vector<Bytes>& keys) {
  expect_bytes(messages, judge(cipher_of, mode, direction, arena, messages, keys),
               run(mode, direction, arena, messages, keys));
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

// Sizes, addresses and keys are mixed. Every third message is processed in place. One key is not
// valid.
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
        // Counters whose increment carries through many bytes.
        if (i % 5 == 0) std::fill(message.iv.begin() + 1, message.iv.end() - 1, Byte{0xff});
        messages.push_back(message);
      }
      expect_the_cpus_bytes(mode, direction, random.bytes(ranges.used()), messages, keys);
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
    expect_the_cpus_bytes(mode, Direction::decrypt, random.bytes(used), messages, keys);
  }
}

// Short messages have a kernel of their own, in which four lanes process two neighbours.
TEST_F(CudaCipherModes, short_counters_match_the_cpu_at_every_size) {
  TestRandom random;
  const Mode& mode = modes[3];
  ASSERT_EQ(mode.mode, CryptMode::ctr);
  for (const std::size_t count : {1u, 2u, 15u, 16u, 17u, 33u, 257u, 2000u}) {
    std::vector<Bytes> keys;
    for (int i = 0; i < 20; ++i)
      keys.push_back(random.bytes(16 + 8 * (i % 3)));
    RangeAllocator ranges(random);
    std::vector<PlannedMessage> messages;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = count < 257 ? random.below(257) : i % 257;
      const std::size_t in = ranges.take(size);
      const std::size_t out = i % 3 == 0 ? in : ranges.take(size);
      messages.push_back({in, out, size, static_cast<std::uint32_t>(random.below(20)), {}});
      if (i % 50 == 49) messages.back().key = no_key;
      CipherIv& iv = messages.back().iv;
      random.fill(iv);
      if (i % 5 == 0) std::fill(iv.begin() + 1, iv.end() - 1, Byte{0xff});
    }
    expect_the_cpus_bytes(mode, Direction::encrypt, random.bytes(ranges.used()), messages, keys);
  }
}

TEST_F(CudaCipherModes, no_tasks_are_valid) {
  EXPECT_EQ(
      crypt(CryptMode::ctr, CryptDirection::encrypt, nullptr, 0, 0, 0, nullptr, nullptr, nullptr),
      cudaSuccess);
}

}  // namespace
}  // namespace nacre::engine::cuda
