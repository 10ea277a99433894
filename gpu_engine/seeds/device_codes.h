// SPDX-License-Identifier: Apache-2.0
// The papers' own methods on a GPU, each as its paper describes it, for `nacre-papers` to compare
// with the engine. Nothing else uses them.
//
// Every call allocates its device memory, does the work, measures the time and frees the memory. It
// returns the result, which the caller compares. Times are seconds, and medians of `repetitions`
// runs (at least 1; fewer when a run takes long). Errors: unsupported when this build has no CUDA
// compiler or this machine no device; out_of_memory; io. Not thread-safe.
#pragma once

#include <cstdint>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::engine::seeds {

// --- Tosoni and Sorio: a table of 256 words for each byte of the message.
enum class CrcWay {
  host_xor,         // "Parallel 1": the host XORs the words
  reduction,        // "Parallel 2": in shared memory, launch by launch
  half_block,       // "Parallel 3": with blocks of half as many threads
  table_on_device,  // half_block with tables made on the device
  without_tables,   // computes each byte's remainder at its place, instead of looking it up
};
struct CrcTimes {
  double tables = 0;   // making them, and copying them where the host makes them
  double copy_in = 0;  // the message
  double crc_kernel = 0;
  double xor_kernel = 0;  // all launches; for host_xor: the host's time
  double copy_out = 0;
  // The whole time as the paper counts it. whole: begins with the message on the device;
  // whole_with_copies: begins with the message on the host.
  double whole = 0;
  double whole_with_copies = 0;
  std::uint64_t table_bytes = 0;
};
struct CrcOutcome {
  CrcTimes times;
  std::uint32_t crc = 0;
};
// message: at least 4 bytes.
Result<CrcOutcome> crc_on_device(CrcWay way, ByteView message, unsigned repetitions);

// --- Ciphers.
struct CryptTimes {
  double kernel = 0;
  double with_copies = 0;  // from page-locked memory and back
};

// Masood: AES-256, byte by byte, one thread for each block. Each step includes the steps before it.
enum class AesStep { global_memory, constant_memory, shared_memory, unrolled, schedule_on_device };
// key: 32 bytes. in: whole blocks; out is as long. ECB.
Result<CryptTimes> aes_on_device(AesStep step, bool encrypts, ByteView key, ByteView in,
                                 MutableByteView out, unsigned repetitions);

// Harrison and Waldron: AES-128-CTR by tables of words, one thread for each block. The host makes
// the key schedule.
enum class TableMemory { constant, texture, shared, shared_copies };
enum class TableLayout { single, quad };
// shared_copies: a single table, with a copy in each bank. key and first_counter: 16 bytes.
Result<CryptTimes> counter_on_device(TableMemory memory, TableLayout layout, ByteView key,
                                     ByteView first_counter, ByteView in, MutableByteView out,
                                     unsigned repetitions);

// --- Harrison and Waldron: reads of a table of 1,024 words (their table 1).
struct ReadTimes {
  double seconds = 0;
  std::uint64_t read_count = 0;  // words read in that time, at least the number asked for
};
// random: each thread reads in its own order. Otherwise all threads read in the order that suits
// the memory best (the same word in constant memory, neighbours elsewhere). The words that are read
// are checked. memory: any but shared_copies.
Result<ReadTimes> table_reads_on_device(TableMemory memory, bool random, std::uint64_t read_count,
                                        unsigned repetitions);
// Each thread reads block_count blocks of 16 bytes in a row, right behind those of the thread
// before it (their figure 6). The bytes that are read are checked.
Result<double> strided_reads_on_device(std::uint32_t thread_count, std::uint32_t block_count,
                                       unsigned repetitions);

}  // namespace nacre::engine::seeds
