// SPDX-License-Identifier: Apache-2.0
// CRC-32 (IEEE) and CRC-32C over arrays of tasks. The values equal those of checksum/crc32.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

enum class ChecksumPolynomial : std::uint8_t { crc32, crc32c };

// In bytes, for count tasks of at most total_bytes in all. The workspace is device memory, aligned
// to 256 bytes.
std::size_t checksum_workspace_size(std::uint32_t count, std::uint64_t total_bytes);

// results[i] becomes task i's checksum, which continues from its `before`.
cudaError_t checksum(ChecksumPolynomial polynomial, const ChecksumTask* tasks, std::uint32_t count,
                     std::uint64_t total_bytes, std::uint32_t* results, void* workspace,
                     cudaStream_t stream);

}  // namespace nacre::engine::cuda
