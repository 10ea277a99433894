// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/seeds/cuda/device_run.h"

#include <chrono>

namespace nacre::engine::seeds {

using cuda::check;

namespace {

// Work that takes long is not repeated as often.
constexpr double enough_seconds = 0.1;

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Result<> need_device() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return {};
  static_cast<void>(cudaGetLastError());
  return fail(ErrorCode::unsupported, "this machine has no CUDA device");
}

Result<double> device_seconds(cudaStream_t stream, unsigned repetitions,
                              const std::function<cudaError_t()>& work) {
  NACRE_TRY(check(work(), "warming up"));
  std::vector<double> times;
  double spent = 0;
  for (unsigned i = 0; i < std::max(repetitions, 1u) && spent < enough_seconds; ++i) {
    NACRE_ASSIGN(cuda::Stopwatch watch, cuda::Stopwatch::start(stream));
    NACRE_TRY(check(work(), "launching a kernel"));
    NACRE_ASSIGN(const double seconds, watch.stop(stream));
    times.push_back(seconds);
    spent += seconds;
  }
  return median_of(times);
}

Result<double> host_seconds(cudaStream_t stream, unsigned repetitions,
                            const std::function<cudaError_t()>& work) {
  NACRE_TRY(check(work(), "warming up"));
  NACRE_TRY(check(cudaStreamSynchronize(stream), "waiting for the device"));
  std::vector<double> times;
  double spent = 0;
  for (unsigned i = 0; i < std::max(repetitions, 1u) && spent < enough_seconds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    NACRE_TRY(check(work(), "launching a kernel"));
    NACRE_TRY(check(cudaStreamSynchronize(stream), "waiting for the device"));
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    spent += times.back();
  }
  return median_of(times);
}

Result<cuda::DeviceMemory> copy_to_device(ByteView bytes) {
  NACRE_ASSIGN(cuda::DeviceMemory memory, cuda::DeviceMemory::allocate(bytes.size()));
  NACRE_TRY(check(cudaMemcpy(memory.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
                  "copying to the device"));
  return memory;
}

Result<CryptTimes> time_cipher(ByteView in, MutableByteView out, unsigned repetitions,
                               const CipherLaunch& launch) {
  NACRE_ASSIGN(const cuda::Stream stream, cuda::Stream::create());
  NACRE_ASSIGN(const cuda::DeviceMemory d_in, cuda::DeviceMemory::allocate(in.size()));
  NACRE_ASSIGN(const cuda::DeviceMemory d_out, cuda::DeviceMemory::allocate(in.size()));
  NACRE_ASSIGN(Arena pinned_in, cuda::allocate_pinned_arena(in.size()));
  NACRE_ASSIGN(Arena pinned_out, cuda::allocate_pinned_arena(in.size()));
  std::copy(in.begin(), in.end(), pinned_in.data());
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, in.size(), kind, stream.get());
  };
  CryptTimes times;
  NACRE_ASSIGN(times.with_copies, host_seconds(stream.get(), repetitions, [&] {
                 cudaError_t error = copy(d_in.data(), pinned_in.data(), cudaMemcpyHostToDevice);
                 if (error == cudaSuccess) error = launch(d_in.data(), d_out.data(), stream.get());
                 if (error == cudaSuccess)
                   error = copy(pinned_out.data(), d_out.data(), cudaMemcpyDeviceToHost);
                 return error;
               }));
  NACRE_ASSIGN(times.kernel, device_seconds(stream.get(), repetitions, [&] {
                 return launch(d_in.data(), d_out.data(), stream.get());
               }));
  std::copy_n(pinned_out.data(), in.size(), out.data());
  return times;
}

}  // namespace nacre::engine::seeds
