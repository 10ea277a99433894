// SPDX-License-Identifier: Apache-2.0
// Sizes of batches and slots, tuned on an H200 (docs/PERFORMANCE_CUDA.md has the measurements).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gpu_engine/plan/device_limits.h"

namespace nacre::engine::cuda {

// How many batches are in flight on a device. Encoding takes milliseconds for a piece, however few
// pieces there are. Many pieces must therefore be in flight to keep the device busy: slots × batch
// size.
inline constexpr unsigned slots_per_device = 8;

// How far batches are filled; batch_size_bytes is a limit in any case. Long batches make a payload
// end late, and short ones give the codecs too few pieces at a time. So each slot should get two
// batches of a payload (one if one thread processes each message), within these bounds. If messages
// are very short on average, batches have at least batch_message_count_min_of_short messages: calls
// to the driver, which run one at a time, would otherwise cost more than the overlap gains.
inline constexpr std::uint64_t batch_fill_bytes_max = 24u << 20;
inline constexpr std::uint64_t batch_fill_bytes_min = 4u << 20;
inline constexpr std::uint64_t batches_per_slot = 2;
inline constexpr std::uint32_t batch_message_count_max = 4096;
inline constexpr std::uint32_t batch_message_count_min = 256;
inline constexpr std::uint32_t batch_message_count_min_of_short = 1024;
inline constexpr std::uint64_t short_message_size_bytes = 1024;
// Batches without a codec have at least batch_fill_bytes_min, but a group is cut into at least this
// many batches if it can: 2,048 messages of 8 KiB in four batches take 0.8 of their time in eight.
inline constexpr std::size_t overlapping_batches = 4;

// A thread that waits for a batch polls for this time before it sleeps. On a virtual machine it
// takes as long to wake up.
inline constexpr std::chrono::microseconds awake_wait_max{60};

// How much of a slot's memory is set aside for the workspace of a codec's kernels.
inline constexpr std::size_t codec_workspace_bytes_max = 64u << 20;

// Device memory of a slot: inputs, outputs, two intermediate stages, expanded keys and tasks, and a
// codec's workspace.
inline constexpr std::size_t slot_size_bytes =
    4 * batch_size_bytes + (96u << 20) + codec_workspace_bytes_max;
// Room for the tasks and keys that the host writes, and for the results that the device writes.
inline constexpr std::size_t upload_size_bytes = 6u << 20;
inline constexpr std::size_t download_size_bytes = 1u << 20;

// RSA: a batch takes equally long however few messages it has. So batches are long, but short
// enough for each slot to get one.
inline constexpr std::uint32_t rsa_message_count_max = 2048;
// New keys: some slots search primes while the host makes keys for others. So batches are short
// enough for each slot to get several.
inline constexpr std::uint32_t rsa_generate_count_max = 128;

// Up to this many separate ranges are copied by a call each (3 us). For more, a kernel reads or
// writes the host's page-locked memory. Inputs in memory that is not page-locked are packed first.
inline constexpr std::size_t copy_run_count_max = 24;

// Separate outputs that are on average no longer than this are copied by the host. The kernel that
// would write them has four blocks, which take a microsecond for each output, however short it is.
inline constexpr std::uint64_t staged_size_bytes_max = 4u << 10;

}  // namespace nacre::engine::cuda
