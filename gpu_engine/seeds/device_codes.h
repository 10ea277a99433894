// SPDX-License-Identifier: Apache-2.0
// The papers' own ways on a GPU, each as its paper describes it, to stand beside the engine in
// `nacre bench seeds`. Nothing else uses them, and the engine does not.
//
// Every call takes its device memory, does the work, looks at the time and gives the memory back;
// what comes out is returned, for the caller to compare. Times are seconds, medians of so many
// repetitions (at least 1; fewer where one takes long). unsupported where this build has no CUDA
// compiler or this machine no device; out_of_memory; io. One call at a time.
#pragma once

#include <cstdint>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::engine::seeds {

// --- Tosoni and Sorio: a table of 256 words for each byte of the message.
enum class CrcWay {
  host_xor,         // "Parallel 1": the words are xored by the host
  reduction,        // "Parallel 2": in shared memory, launch by launch
  half_block,       // "Parallel 3": with blocks of half as many threads
  table_on_device,  // as the last, the tables made on the device
  without_tables,   // the remainder of each byte in its place computed
};
struct CrcTimes {
  double tables = 0;   // making them, and copying them where the host makes them
  double copy_in = 0;  // the message
  double crc_kernel = 0;
  double xor_kernel = 0;  // all launches; of host_xor: what the host takes
  double copy_out = 0;
  // The whole as the paper has it: from the message on the device (whole), or on the host.
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

// Masood: AES-256, a thread a block, byte by byte; each step keeps the ones before it.
enum class AesStep { global_memory, constant_memory, shared_memory, unrolled, schedule_on_device };
// key: 32 bytes. in: whole blocks; out as long. ECB.
Result<CryptTimes> aes_on_device(AesStep step, bool encrypts, ByteView key, ByteView in,
                                 MutableByteView out, unsigned repetitions);

// Harrison and Waldron: AES-128-CTR by tables of words, a thread a block, the schedule made by the
// host.
enum class TableMemory { constant, texture, shared, shared_copies };
enum class TableLayout { single, quad };
// shared_copies: the single table once for each bank. key and first_counter: 16 bytes.
Result<CryptTimes> counter_on_device(TableMemory memory, TableLayout layout, ByteView key,
                                     ByteView first_counter, ByteView in, MutableByteView out,
                                     unsigned repetitions);

// --- Harrison and Waldron: reads of a table of 1,024 words (table 1 there).
struct ReadTimes {
  double seconds = 0;
  std::uint64_t read_count = 0;  // words read in that time, at least what was asked for
};
// random: each thread goes its own way; else all read as that memory likes it best (the same word
// in constant memory, neighbours elsewhere). What is read is compared. memory is not shared_copies.
Result<ReadTimes> table_reads_on_device(TableMemory memory, bool random, std::uint64_t read_count,
                                        unsigned repetitions);
// Each of so many threads reads so many blocks of 16 bytes in a row, right behind the thread before
// it (figure 6 there). What is read is compared.
Result<double> strided_reads_on_device(std::uint32_t thread_count, std::uint32_t block_count,
                                       unsigned repetitions);

}  // namespace nacre::engine::seeds
