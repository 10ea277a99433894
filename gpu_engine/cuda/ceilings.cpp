// SPDX-License-Identifier: Apache-2.0
// Copies page-locked memory on one stream, and on two streams at once.
#include "gpu_engine/cuda/ceilings.h"

#include <algorithm>
#include <array>
#include <functional>

#include "gpu_engine/cuda/runtime.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::size_t copy_size_bytes = 256u << 20;

// The median rate, in bytes a second, of the copies that copy() starts. `stream` must end last: a
// copy on another stream is waited for on it.
Result<double> measure(const Stream& stream, double bytes, const std::function<Result<>()>& copy) {
  std::array<double, 5> rates;
  for (double& rate : rates) {
    NACRE_ASSIGN(Stopwatch watch, Stopwatch::start(stream.get()));
    NACRE_TRY(copy());
    NACRE_ASSIGN(const double seconds, watch.stop(stream.get()));
    rate = bytes / seconds;
  }
  std::ranges::sort(rates);
  return rates[rates.size() / 2];
}

}  // namespace

Result<DeviceCeilings> measure_ceilings() {
  NACRE_ASSIGN(const Stream stream, Stream::create());
  NACRE_ASSIGN(const Stream second, Stream::create());
  NACRE_ASSIGN(const Event second_ended, Event::create());
  NACRE_ASSIGN(Arena up, allocate_pinned_arena(copy_size_bytes));
  NACRE_ASSIGN(Arena down, allocate_pinned_arena(copy_size_bytes));
  NACRE_ASSIGN(const DeviceMemory a, DeviceMemory::allocate(copy_size_bytes));
  NACRE_ASSIGN(const DeviceMemory b, DeviceMemory::allocate(copy_size_bytes));
  const auto copy = [&](Byte* to, const Byte* from, const Stream& on) {
    return check(cudaMemcpyAsync(to, from, copy_size_bytes, cudaMemcpyDefault, on.get()),
                 "copying");
  };
  const auto bytes = static_cast<double>(copy_size_bytes);
  DeviceCeilings ceilings;
  NACRE_ASSIGN(ceilings.host_to_device,
               measure(stream, bytes, [&] { return copy(a.data(), up.data(), stream); }));
  NACRE_ASSIGN(ceilings.device_to_host,
               measure(stream, bytes, [&] { return copy(down.data(), b.data(), stream); }));
  NACRE_ASSIGN(ceilings.both_ways, measure(stream, bytes, [&]() -> Result<> {
                 NACRE_TRY(copy(a.data(), up.data(), second));
                 NACRE_TRY(check(cudaEventRecord(second_ended.get(), second.get()), "marking"));
                 NACRE_TRY(copy(down.data(), b.data(), stream));
                 return check(cudaStreamWaitEvent(stream.get(), second_ended.get(), 0), "waiting");
               }));
  NACRE_ASSIGN(ceilings.device_copy,
               measure(stream, 2 * bytes, [&] { return copy(a.data(), b.data(), stream); }));
  return ceilings;
}

}  // namespace nacre::engine::cuda
