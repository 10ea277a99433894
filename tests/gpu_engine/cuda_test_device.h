// SPDX-License-Identifier: Apache-2.0
// What tests of kernels share: the skip where no device is, memory of the device, and arenas that
// show a stray write.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {

// NACRE_TEST_PART=N: random tests take the N-th part of their messages and of their longest ones,
// as they do under a sanitizer. 1 otherwise.
inline std::size_t test_part() {
  static const char* const text = std::getenv("NACRE_TEST_PART");
  static const int part = text == nullptr ? 1 : std::atoi(text);
  return part < 1 ? 1 : static_cast<std::size_t>(part);
}

}  // namespace nacre::engine

namespace nacre::engine::cuda {

#define ASSERT_CUDA(call)                                                                  \
  do {                                                                                     \
    const cudaError_t cuda_error = (call);                                                 \
    ASSERT_EQ(cuda_error, cudaSuccess) << #call << ": " << cudaGetErrorString(cuda_error); \
  } while (false)

// Skips, and says why, where there is no device; with NACRE_REQUIRE_GPU=1 it fails instead.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return;
    const std::string why =
        error == cudaSuccess ? "no CUDA device" : std::string(cudaGetErrorString(error));
    const char* const required = std::getenv("NACRE_REQUIRE_GPU");
    if (required != nullptr && std::string_view(required) == "1")
      FAIL() << "NACRE_REQUIRE_GPU=1, but: " << why;
    std::cout << "skipped: CUDA kernels: " << why << "\n";
    GTEST_SKIP() << why;
  }
};

struct FreeDeviceMemory {
  void operator()(void* memory) const { cudaFree(memory); }
};

// A copy of an array in device memory. Never empty there, so that its address is always valid.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::span<const T> content) : size_(content.size()) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, std::max<std::size_t>(content.size_bytes(), 1)) != cudaSuccess) return;
    memory_.reset(memory);
    if (cudaMemcpy(memory, content.data(), content.size_bytes(), cudaMemcpyHostToDevice) !=
        cudaSuccess)
      memory_.reset();
  }
  explicit DeviceArray(std::size_t size) : DeviceArray(std::vector<T>(size)) {}
  explicit DeviceArray(const std::vector<T>& content) : DeviceArray(std::span<const T>(content)) {}

  T* data() const { return static_cast<T*>(memory_.get()); }
  // Waits for the device.
  std::vector<T> copy() const {
    std::vector<T> content(size_);
    EXPECT_EQ(cudaMemcpy(content.data(), memory_.get(), size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return content;
  }

 private:
  std::size_t size_;
  std::unique_ptr<void, FreeDeviceMemory> memory_;
};

// Ranges in one arena, at odd addresses where asked for, with bytes between them that must stay.
class RangeAllocator {
 public:
  explicit RangeAllocator(TestRandom& random) : random_(random) {}

  std::size_t take(std::size_t size) {
    // Half of the ranges begin at a multiple of 16, the others anywhere.
    used_ += 1 + random_.below(40);
    if (random_.below(2) == 0) used_ = (used_ + 15) / 16 * 16;
    const std::size_t at = used_;
    used_ += size;
    return at;
  }
  std::size_t used() const { return used_ + 16; }

 private:
  TestRandom& random_;
  std::size_t used_ = 0;
};

// Mostly short, now and then up to 70 KiB, and the edges of blocks and tiles.
inline std::size_t random_size(TestRandom& random) {
  switch (random.below(4)) {
    case 0:
      return random.below(300);
    case 1:
      return random.below(70 * 1024);
    case 2: {
      const std::size_t edge = std::size_t{16} << random.below(13);
      return edge - 1 + random.below(3);
    }
    default:
      return 256 * random.below(40);
  }
}

}  // namespace nacre::engine::cuda
