// SPDX-License-Identifier: Apache-2.0
// What the papers' methods on a device share: finding the device, timing, and the copies of a
// cipher's bytes from the host's memory to the device and back.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/seeds/device_codes.h"

namespace nacre::engine::seeds {

// unsupported when the machine has no device that works.
Result<> need_device();

// The device's time for the work that `work` puts on the stream: the median of `repetitions` runs.
Result<double> device_seconds(cudaStream_t stream, unsigned repetitions,
                              const std::function<cudaError_t()>& work);
// The host's time for work that ends when the stream is empty.
Result<double> host_seconds(cudaStream_t stream, unsigned repetitions,
                            const std::function<cudaError_t()>& work);

// Device memory with a copy of these bytes.
Result<cuda::DeviceMemory> copy_to_device(ByteView bytes);

// Runs a cipher's kernel from in to out, both in device memory; launch takes the two and the
// stream. out then holds the bytes of the last run.
using CipherLaunch = std::function<cudaError_t(const Byte* in, Byte* out, cudaStream_t stream)>;
Result<CryptTimes> time_cipher(ByteView in, MutableByteView out, unsigned repetitions,
                               const CipherLaunch& launch);

}  // namespace nacre::engine::seeds
