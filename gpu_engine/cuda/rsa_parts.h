// SPDX-License-Identifier: Apache-2.0
// What batches of RSA share: numbers in the form that kernels use, and memory that is wiped in the
// end.
#pragma once

#include <span>

#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/kernels/rsa.h"

namespace nacre::engine::cuda {

// Wipes a slot's memory when the batch ends, however it ends.
class SlotWiper {
 public:
  explicit SlotWiper(Slot& slot) : slot_(slot) {}
  SlotWiper(const SlotWiper&) = delete;
  SlotWiper& operator=(const SlotWiper&) = delete;
  ~SlotWiper() {
    // A device that failed keeps its memory until the slot is freed.
    if (!device_wiped_) static_cast<void>(slot_.wipe_device());
    slot_.wipe_host();
  }
  // Wipes the device's memory; the host still needs its own.
  Result<> wipe_device() {
    device_wiped_ = true;
    return slot_.wipe_device();
  }

 private:
  Slot& slot_;
  bool device_wiped_ = false;
};

// -1 / odd mod 2^32.
constexpr std::uint32_t negative_inverse(std::uint32_t odd) {
  std::uint32_t inverse = odd;  // right in the lowest three bits, then in twice as many each time
  for (int i = 0; i < 4; ++i)
    inverse *= 2 - odd * inverse;
  return ~inverse + 1;
}
static_assert(negative_inverse(0xfffffff1) * 0xfffffff1 == 0xffffffff);

// Calls function with N as a constant: the smallest size whose numbers of 32 N bits hold a number
// of this many bits. A longer number is the caller's error; it is treated as the longest size.
template <typename Function>
auto with_prime_limbs(int prime_bits, const Function& function) {
  if (prime_bits <= 32 * 16) return function(std::integral_constant<int, 16>());
  if (prime_bits <= 32 * 32) return function(std::integral_constant<int, 32>());
  if (prime_bits <= 32 * 48) return function(std::integral_constant<int, 48>());
  return function(std::integral_constant<int, 64>());
}

}  // namespace nacre::engine::cuda
