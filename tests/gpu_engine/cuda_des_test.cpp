// SPDX-License-Identifier: Apache-2.0
// The DES and 3DES kernels in plain modes against the CPU's, and NIST's vectors.
#include "gpu_engine/cuda/kernels/des.h"
#include "tests/gpu_engine/cuda_messages.h"
#include "tests/gpu_engine/response_file.h"

namespace nacre::engine::cuda {
namespace {

constexpr Direction directions[] = {Direction::encrypt, Direction::decrypt};
constexpr std::size_t block_bytes = 8;

std::size_t key_bytes(int pass_count) {
  return static_cast<std::size_t>(des_key_bytes * pass_count);
}

std::string describe(int pass_count, const Mode& mode, Direction direction) {
  return std::string(pass_count == 1 ? "des-" : "des-ede3-") + mode.name +
         (direction == Direction::encrypt ? " encrypt" : " decrypt");
}

// The cpu's result.
Bytes judge(int pass_count, const Mode& mode, Direction direction, const Bytes& arena,
            const std::vector<PlannedMessage>& messages, const std::vector<Bytes>& keys) {
  const auto cipher_of = [&](std::size_t) {
    return pass_count == 1 ? BlockCipher::des : BlockCipher::des_ede3;
  };
  return judge(cipher_of, mode, direction, arena, messages, keys);
}

// Runs messages on the device, out of arena and, in place, into it.
Bytes run(int pass_count, const Mode& mode, Direction direction, const Bytes& arena,
          const std::vector<PlannedMessage>& messages, const std::vector<Bytes>& keys) {
  const DeviceArray<RawKey> d_keys(raw_keys(keys));
  const DeviceArray<DesKey> d_expanded(keys.size());
  const DeviceArray<Byte> d_arena(arena);
  const PlannedTasks planned(messages, d_arena.data());
  const DeviceArray<CryptTask> d_tasks(planned.tasks);
  const DeviceArray<Byte> d_workspace(
      des_crypt_workspace_size(planned.count(), planned.total_bytes));
  EXPECT_EQ(des_expand_keys(d_keys.data(), static_cast<std::uint32_t>(keys.size()), pass_count,
                            d_expanded.data(), nullptr, nullptr),
            cudaSuccess);
  EXPECT_EQ(des_crypt(pass_count, mode.mode, on_device(direction), d_tasks.data(), planned.count(),
                      planned.total_bytes, d_expanded.data(), d_workspace.data(), nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return d_arena.copy();
}

class CudaDes : public CudaTest {};

TEST_F(CudaDes, nist_vectors_come_out) {
  int seen = 0;
  for (const ResponseCase& test : read_response_file("block_ciphers_nist.rsp", "Cipher")) {
    for (const int pass_count : {1, 3}) {
      for (const Mode& mode : modes) {
        const std::string name = (pass_count == 1 ? "des-" : "des-ede3-") + std::string(mode.name);
        if (test.fields.at("Cipher") != name) continue;
        SCOPED_TRACE(name);
        ++seen;
        const Bytes key = test["Key"], plain = test["PT"], cipher = test["CT"];
        PlannedMessage message = {0, plain.size(), plain.size(), 0, {}};
        if (mode.mode != CryptMode::ecb) {
          const Bytes given_iv = test["IV"];
          std::copy(given_iv.begin(), given_iv.end(), message.iv.begin());
        }
        for (const Direction direction : directions) {
          const bool encrypts = direction == Direction::encrypt;
          Bytes arena = encrypts ? plain : cipher;
          arena.resize(2 * plain.size());
          const Bytes result = run(pass_count, mode, direction, arena, {message}, {key});
          EXPECT_EQ(to_hex(ByteView(result).subspan(plain.size())),
                    test.fields.at(encrypts ? "CT" : "PT"));
        }
      }
    }
  }
  EXPECT_EQ(seen, 18);
}

// Sizes, addresses and keys are mixed. Every third message is processed in place. One key is not
// valid.
TEST_F(CudaDes, random_mixtures_match_the_cpu) {
  TestRandom random;
  for (const int pass_count : {1, 3}) {
    for (const Mode& mode : modes) {
      for (const Direction direction : directions) {
        SCOPED_TRACE(describe(pass_count, mode, direction));
        std::vector<Bytes> keys;
        for (int i = 0; i < 9; ++i)
          keys.push_back(random.bytes(key_bytes(pass_count)));
        RangeAllocator ranges(random);
        std::vector<PlannedMessage> messages;
        for (std::size_t i = 0; i < 200 / test_part(); ++i) {
          std::size_t size = i == 7 ? (1u << 20) / test_part() + 5 : random_size(random);
          if (takes_whole_blocks(mode.cpu_mode)) size = size / block_bytes * block_bytes;
          const std::size_t in = ranges.take(size);
          const std::size_t out = i % 3 == 0 ? in : ranges.take(size);
          PlannedMessage message = {in, out, size, static_cast<std::uint32_t>(random.below(9)), {}};
          if (i % 50 == 49) message.key = no_key;
          random.fill(message.iv);
          // Counters whose increment carries through many bytes.
          if (i % 5 == 0) std::fill(message.iv.begin() + 1, message.iv.begin() + 6, Byte{0xff});
          messages.push_back(message);
        }
        const Bytes arena = random.bytes(ranges.used());
        const Bytes expected = judge(pass_count, mode, direction, arena, messages, keys);
        const Bytes result = run(pass_count, mode, direction, arena, messages, keys);
        expect_bytes(messages, expected, result);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Each with a key of its own: units of 32 blocks and their neighbours, in place.
TEST_F(CudaDes, many_short_messages_match_the_cpu) {
  TestRandom random;
  for (const int pass_count : {1, 3}) {
    for (const Mode& mode : modes) {
      for (const Direction direction : directions) {
        SCOPED_TRACE(describe(pass_count, mode, direction));
        std::vector<Bytes> keys;
        std::vector<PlannedMessage> messages;
        std::size_t used = 0;
        for (std::uint32_t i = 0; i < 3000 / test_part(); ++i) {
          keys.push_back(random.bytes(key_bytes(pass_count)));
          const std::size_t size = block_bytes * (i % 4 == 3 ? random.below(80) : 32);
          messages.push_back({used, used, size, i, {}});
          random.fill(messages.back().iv);
          used += size;
        }
        const Bytes arena = random.bytes(used);
        EXPECT_TRUE(run(pass_count, mode, direction, arena, messages, keys) ==
                    judge(pass_count, mode, direction, arena, messages, keys));
      }
    }
  }
}

// Whole tiles, which lie in the registers in another order: aligned and not, in place.
TEST_F(CudaDes, long_messages_match_the_cpu) {
  TestRandom random;
  for (const int pass_count : {1, 3}) {
    for (const Mode& mode : modes) {
      if (is_serial(mode.cpu_mode, Direction::decrypt)) continue;
      for (const std::size_t shift : {0, 1, 4, 8}) {
        SCOPED_TRACE(describe(pass_count, mode, Direction::decrypt) + " at " +
                     std::to_string(shift));
        const std::vector<Bytes> keys = {random.bytes(key_bytes(pass_count)),
                                         random.bytes(key_bytes(pass_count))};
        std::vector<PlannedMessage> messages;
        std::size_t used = shift;
        for (std::uint32_t i = 0; i < 40 / test_part(); ++i) {
          messages.push_back({used, used, 16384 + 256 * (i % 3), i / 2 % 2, {}});
          random.fill(messages.back().iv);
          used += messages.back().size;
        }
        const Bytes arena = random.bytes(used + 16);
        EXPECT_TRUE(run(pass_count, mode, Direction::decrypt, arena, messages, keys) ==
                    judge(pass_count, mode, Direction::decrypt, arena, messages, keys));
      }
    }
  }
}

TEST_F(CudaDes, other_numbers_of_passes_are_refused) {
  EXPECT_EQ(des_crypt(2, CryptMode::ctr, CryptDirection::encrypt, nullptr, 1, 0, nullptr, nullptr,
                      nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(des_expand_keys(nullptr, 1, 0, nullptr, nullptr, nullptr), cudaErrorInvalidValue);
}

TEST_F(CudaDes, no_tasks_are_valid) {
  EXPECT_EQ(des_crypt(3, CryptMode::ctr, CryptDirection::encrypt, nullptr, 0, 0, nullptr, nullptr,
                      nullptr),
            cudaSuccess);
}

}  // namespace
}  // namespace nacre::engine::cuda
