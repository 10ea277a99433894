// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/cuda/device.h"

#include <algorithm>

#include <fmt/format.h>

#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/cuda/tuning.h"

namespace nacre::engine::cuda {
namespace {

// Slots take at most this part of a device's memory.
constexpr std::size_t slot_memory_divisor = 3;

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// What an error means, in words for the machine's owner. If there is no driver, the runtime says
// that the driver is too old.
std::string words_for(cudaError_t error) {
  if (error == cudaErrorNoDevice) return "this machine has no CUDA device, or it is hidden";
  int driver = 0;
  int runtime = 0;
  if (error != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess ||
      cudaRuntimeGetVersion(&runtime) != cudaSuccess) {
    return cudaGetErrorString(error);
  }
  if (driver == 0) return "this machine has no NVIDIA driver";
  return fmt::format(
      "the NVIDIA driver is made for CUDA {}, this program needs {}: update the driver",
      version_text(driver), version_text(runtime));
}

}  // namespace

Result<int> count_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return fail(ErrorCode::unsupported, fmt::format("cuda: none ({})", words_for(error)));
  }
  if (count == 0) return fail(ErrorCode::unsupported, "cuda: none (the driver knows no device)");
  return count;
}

Result<std::unique_ptr<Device>> open_device(int number) {
  cudaDeviceProp properties = {};
  NACRE_TRY(check(cudaGetDeviceProperties(&properties, number), "asking for its properties"));
  int same_address = 0;
  NACRE_TRY(check(
      cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, number),
      "asking for an attribute"));
  if (properties.canMapHostMemory == 0 || properties.unifiedAddressing == 0 || same_address == 0)
    return fail(ErrorCode::unsupported, "it cannot reach the host's memory");
  NACRE_TRY(check(cudaSetDevice(number), "choosing it"));
  auto device = std::make_unique<Device>();
  device->number = number;
  device->name = properties.name;
  return device;
}

Result<std::vector<Slot>> make_slots() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  NACRE_TRY(check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for a device's memory"));
  const std::size_t count = std::clamp<std::size_t>(
      free_bytes / slot_memory_divisor / slot_size_bytes, 1, slots_per_device);
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < count; ++i) {
    NACRE_ASSIGN(Slot slot, Slot::create());
    slots.push_back(std::move(slot));
  }
  return slots;
}

}  // namespace nacre::engine::cuda
