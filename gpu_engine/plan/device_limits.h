// SPDX-License-Identifier: Apache-2.0
// What the planner and devices agree on before a device is touched. Free of CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nacre::engine {

// The size of a batch in bytes: the most that its messages' weights may add up to. A message's
// weight, batch_weight(), is about the larger of its input and output.
inline constexpr std::uint64_t batch_size_bytes = 32u << 20;

// RSA: the longest modulus, and the weight of a message, which stands for the memory of its
// numbers: with windows of 4 bits, 8 KiB of powers for each half of 4,096 bits, and the key.
inline constexpr int rsa_device_bits_max = 4096;
inline constexpr std::uint64_t rsa_weight_bytes = 16u << 10;

// find_alike(): payloads with at least this many messages go to the slots' threads unsorted, if no
// message of a sample of alike_sample_count weighs more than alike_weight_max.
inline constexpr std::size_t alike_count_min = 1024;
inline constexpr std::size_t alike_sample_count = 16;
inline constexpr std::uint64_t alike_weight_max = 4096;

}  // namespace nacre::engine
