// SPDX-License-Identifier: Apache-2.0
// What batches of RSA share: numbers in the form that kernels use, and the wiping of memory.
#pragma once

#include <span>

#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/kernels/rsa.h"

namespace nacre::engine::cuda {

// Wipes the memory of a slot that the batch has used when the batch ends, also after an error.
class SlotWiper {
 public:
  explicit SlotWiper(Slot& slot) : slot_(slot) {}
  SlotWiper(const SlotWiper&) = delete;
  SlotWiper& operator=(const SlotWiper&) = delete;
  ~SlotWiper() {
    // If wiping fails on the device, its memory is wiped or freed with the slot.
    if (!device_wiped_) static_cast<void>(slot_.wipe_device());
    slot_.wipe_host();
  }
  // Wipes the device memory early, while the host still needs the host memory.
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

// Calls function with a constant N, the smallest size for which numbers of prime_bits bits fit into
// 32 N bits. More than 2,048 bits are an error of the caller; N is then 64.
template <typename Function>
auto with_prime_limbs(int prime_bits, const Function& function) {
  if (prime_bits <= 32 * 16) return function(std::integral_constant<int, 16>());
  if (prime_bits <= 32 * 32) return function(std::integral_constant<int, 32>());
  if (prime_bits <= 32 * 48) return function(std::integral_constant<int, 48>());
  return function(std::integral_constant<int, 64>());
}

}  // namespace nacre::engine::cuda
