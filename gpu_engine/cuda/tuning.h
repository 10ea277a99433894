// SPDX-License-Identifier: Apache-2.0
// Sizes of the backend's machinery. Measured on one H200; docs/PERFORMANCE_CUDA.md has the runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gpu_engine/plan/device_limits.h"

namespace nacre::engine::cuda {

// Batches in flight on a device. Encoding a piece takes milliseconds however few there are, so what
// fills the device is pieces in flight: slots × batch size.
inline constexpr unsigned slots_per_device = 8;

// How many messages a batch can hold, next to batch_size_bytes. Batches are
// filled less far where there are enough of them: long ones end a payload late, short ones leave
// the codecs too few pieces at a time. Each slot is to get two of a payload (one of messages that
// are a thread's each), but where messages are so short, on average, that the calls to the driver,
// which take turns, would cost more than what the slots' threads do of a batch beside each other.
inline constexpr std::uint64_t batch_fill_bytes_max = 24u << 20;
inline constexpr std::uint64_t batch_fill_bytes_min = 4u << 20;
inline constexpr std::uint64_t batches_per_slot = 2;
inline constexpr std::uint32_t batch_message_count_max = 4096;
inline constexpr std::uint32_t batch_message_count_min = 256;
inline constexpr std::uint32_t batch_message_count_min_of_short = 1024;
inline constexpr std::uint64_t short_message_size_bytes = 1024;
// Of messages that no codec takes part in batches have batch_fill_bytes_min at least, where so many
// are left: 2,048 of 8 KiB in four batches take 0.8 of what they take in eight.
inline constexpr std::size_t overlapping_batches = 4;

// A batch that ends within this time is waited for awake: to be woken takes as long on a virtual
// machine.
inline constexpr std::chrono::microseconds awake_wait_max{60};

// What a codec's kernels may take besides.
inline constexpr std::size_t codec_workspace_bytes_max = 64u << 20;

// Device memory of a slot: what came in, what goes out, two stages between them, expanded keys, and
// a codec's own.
inline constexpr std::size_t slot_size_bytes =
    4 * batch_size_bytes + (96u << 20) + codec_workspace_bytes_max;
// Descriptions that the host writes, and what the device answers.
inline constexpr std::size_t upload_size_bytes = 6u << 20;
inline constexpr std::size_t download_size_bytes = 1u << 20;

// RSA: batches are as long as lets all slots have one: what a message takes is time, a thread each.
inline constexpr std::uint32_t rsa_message_count_max = 2048;
// New keys: a slot searches primes while the host makes keys of another's, so several batches each.
inline constexpr std::uint32_t rsa_generate_count_max = 128;

// A batch that lies in more runs than this is not copied run by run (3 us each): a kernel reads or
// writes the host's page-locked memory; inputs elsewhere are packed on the host first.
inline constexpr std::size_t copy_run_count_max = 24;

// Outputs that lie apart and are no longer than this, on average, are not written by a kernel: it
// has four blocks, which take a microsecond for each output however short that is. The host copies
// them.
inline constexpr std::uint64_t staged_size_bytes_max = 4u << 10;

}  // namespace nacre::engine::cuda
