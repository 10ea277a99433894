// SPDX-License-Identifier: Apache-2.0
// The CRC kernels against the CPU's.
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cuda/kernels/checksum.h"
#include "tests/gpu_engine/cuda_test_device.h"

namespace nacre::engine::cuda {
namespace {

struct PlannedChecksum {
  std::size_t at, size;
  std::uint32_t before;
};

// bytes_max: what the launcher is told there may be, by which it chooses the size of tiles.
std::vector<std::uint32_t> run(ChecksumPolynomial polynomial, const Bytes& arena,
                               const std::vector<PlannedChecksum>& messages,
                               std::uint64_t bytes_max = 0) {
  const DeviceArray<Byte> d_arena(arena);
  std::vector<ChecksumTask> tasks;
  std::uint64_t total_bytes = 0;
  for (const PlannedChecksum& message : messages) {
    tasks.push_back({d_arena.data() + message.at, message.size, message.before});
    total_bytes += message.size;
  }
  total_bytes = std::max(total_bytes, bytes_max);
  const auto count = static_cast<std::uint32_t>(tasks.size());
  const DeviceArray<ChecksumTask> d_tasks(tasks);
  const DeviceArray<Byte> d_workspace(checksum_workspace_size(count, total_bytes));
  const DeviceArray<std::uint32_t> d_results(count);
  EXPECT_EQ(checksum(polynomial, d_tasks.data(), count, total_bytes, d_results.data(),
                     d_workspace.data(), nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return d_results.copy();
}

std::uint32_t by_cpu(ChecksumPolynomial polynomial, std::uint32_t before, ByteView bytes) {
  return polynomial == ChecksumPolynomial::crc32 ? crc32(before, bytes) : crc32c(before, bytes);
}

class CudaCrc : public CudaTest {};

TEST_F(CudaCrc, check_values_of_the_standards_come_out) {
  const ByteView digits = as_bytes("123456789");
  const Bytes arena(digits.begin(), digits.end());
  EXPECT_EQ(run(ChecksumPolynomial::crc32, arena, {{0, 9, 0}})[0], 0xcbf43926u);
  EXPECT_EQ(run(ChecksumPolynomial::crc32c, arena, {{0, 9, 0}})[0], 0xe3069283u);
}

TEST_F(CudaCrc, every_short_size_at_every_address_matches_the_cpu) {
  TestRandom random;
  const Bytes arena = random.bytes(4096);
  for (const auto polynomial : {ChecksumPolynomial::crc32, ChecksumPolynomial::crc32c}) {
    std::vector<PlannedChecksum> messages;
    for (std::size_t at = 0; at < 17; ++at) {
      for (std::size_t size = 0; size < 150; ++size)
        messages.push_back({at, size, static_cast<std::uint32_t>(random.next())});
    }
    const auto results = run(polynomial, arena, messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      ASSERT_EQ(results[i], by_cpu(polynomial, messages[i].before,
                                   ByteView(arena).subspan(messages[i].at, messages[i].size)))
          << messages[i].size << " bytes at " << messages[i].at;
    }
  }
}

struct CrcPayload {
  ChecksumPolynomial polynomial;
  std::uint64_t bytes_max;
};

// In tiles of one, two, four and eight times the smallest size.
TEST_F(CudaCrc, random_mixtures_match_the_cpu) {
  TestRandom random;
  for (const auto& [polynomial, bytes_max] :
       {CrcPayload{ChecksumPolynomial::crc32, 0}, CrcPayload{ChecksumPolynomial::crc32c, 0},
        CrcPayload{ChecksumPolynomial::crc32, 300 << 20},
        CrcPayload{ChecksumPolynomial::crc32c, 600 << 20},
        CrcPayload{ChecksumPolynomial::crc32, 8ull << 30}}) {
    RangeAllocator ranges(random);
    std::vector<PlannedChecksum> messages;
    for (std::size_t i = 0; i < 500 / test_part(); ++i) {
      const std::size_t size = i == 10 ? (5u << 20) + 3 : i == 11 ? 1u << 20 : random_size(random);
      const auto before = i % 2 == 0 ? 0 : static_cast<std::uint32_t>(random.next());
      messages.push_back({ranges.take(size), size, before});
    }
    const Bytes arena = random.bytes(ranges.used());
    const auto results = run(polynomial, arena, messages, bytes_max);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      ASSERT_EQ(results[i], by_cpu(polynomial, messages[i].before,
                                   ByteView(arena).subspan(messages[i].at, messages[i].size)))
          << "message " << i << ": " << messages[i].size << " bytes at " << messages[i].at;
    }
  }
}

}  // namespace
}  // namespace nacre::engine::cuda
