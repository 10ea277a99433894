// SPDX-License-Identifier: Apache-2.0
// Sizes of the backend's machinery. Measured on one H200; docs/PERFORMANCE_CUDA.md has the runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gpu_engine/plan/device_limits.h"

namespace nacre::engine::cuda {

// How many batches are in flight on a device. Encoding a piece takes milliseconds, however few
// there are. So pieces in flight are what keeps the device busy: slots × batch size.
inline constexpr unsigned slots_per_device = 8;

// How far batches are filled, in addition to batch_size_bytes. Where there are enough messages,
// batches are filled less far: long batches end a payload late, and short ones leave the codecs too
// few pieces at a time. Each slot should get two batches of a payload, or one where a message is
// one thread's. The exception are messages that are so short on average that the calls to the
// driver, which take turns, would cost more than the overlap gains.
inline constexpr std::uint64_t batch_fill_bytes_max = 24u << 20;
inline constexpr std::uint64_t batch_fill_bytes_min = 4u << 20;
inline constexpr std::uint64_t batches_per_slot = 2;
inline constexpr std::uint32_t batch_message_count_max = 4096;
inline constexpr std::uint32_t batch_message_count_min = 256;
inline constexpr std::uint32_t batch_message_count_min_of_short = 1024;
inline constexpr std::uint64_t short_message_size_bytes = 1024;
// Batches of messages without a codec have at least batch_fill_bytes_min, where that many bytes are
// left: 2,048 messages of 8 KiB in four batches take 0.8 of the time that they take in eight.
inline constexpr std::size_t overlapping_batches = 4;

// A thread waits for a batch without sleeping for this time; on a virtual machine waking up takes
// as long.
inline constexpr std::chrono::microseconds awake_wait_max{60};

// How much more memory a codec's kernels may take.
inline constexpr std::size_t codec_workspace_bytes_max = 64u << 20;

// Device memory of a slot: inputs, outputs, two stages between them, expanded keys, and a codec's
// own memory.
inline constexpr std::size_t slot_size_bytes =
    4 * batch_size_bytes + (96u << 20) + codec_workspace_bytes_max;
// Descriptions that the host writes, and answers that the device writes.
inline constexpr std::size_t upload_size_bytes = 6u << 20;
inline constexpr std::size_t download_size_bytes = 1u << 20;

// RSA: a message takes its time, one thread each. So batches are long, but short enough that all
// slots have one.
inline constexpr std::uint32_t rsa_message_count_max = 2048;
// New keys: a slot searches primes while the host makes another slot's keys, so that each slot gets
// several batches.
inline constexpr std::uint32_t rsa_generate_count_max = 128;

// The most runs that are copied one by one (3 us each). For more of them a kernel reads or writes
// the host's page-locked memory; inputs in other memory are packed on the host first.
inline constexpr std::size_t copy_run_count_max = 24;

// Outputs that lie apart and are no longer than this, on average, are copied by the host. A kernel
// that writes them has four blocks, which take a microsecond for each output, however short it is.
inline constexpr std::uint64_t staged_size_bytes_max = 4u << 10;

}  // namespace nacre::engine::cuda
