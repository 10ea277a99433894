// SPDX-License-Identifier: Apache-2.0
// Whether results of private operations are right: the public operation must give the task's in
// back. Not for callers of rsa.h.
#pragma once

#include "gpu_engine/cuda/kernels/rsa.h"

namespace nacre::engine::cuda {

template <int N>
std::size_t rsa_check_workspace_size(std::uint32_t count);

// results: 2 N limbs each, message i's limb j at [j * count + i]. What is right goes to the task's
// out, zeros for what is not; verdicts as rsa_private().
template <int N>
cudaError_t rsa_check(const RsaPublicWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
                      std::uint32_t* results, std::uint32_t* verdicts, void* workspace,
                      cudaStream_t stream);

}  // namespace nacre::engine::cuda
