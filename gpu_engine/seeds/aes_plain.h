// SPDX-License-Identifier: Apache-2.0
// AES as plain serial programs do it, one block after the other in ECB: byte by byte (as in the
// project report of Guan and Li, figure 4), and with four tables of words (what "a CPU" means for
// Masood, and for Harrison and Waldron). It has no defence against timing attacks, and is for
// measurements only.
#pragma once

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/seeds/aes_constants.h"

namespace nacre::engine::seeds {

// Immutable, so thread-safe. The key has 16, 24 or 32 bytes.
class PlainAes {
 public:
  explicit PlainAes(ByteView key);
  // Whole blocks of 16 bytes; out is as long as in, or longer.
  void encrypt_bytewise(ByteView in, MutableByteView out) const;
  void decrypt_bytewise(ByteView in, MutableByteView out) const;
  void encrypt_by_tables(ByteView in, MutableByteView out) const;
  void decrypt_by_tables(ByteView in, MutableByteView out) const;
  // CBC by the tables: each block waits for the one before it.
  void encrypt_cbc(ByteView in, MutableByteView out, ByteView iv) const;
  // CTR by the tables, in both directions. The first counter block is a number of 128 bits, the
  // highest byte first.
  void apply_counter(ByteView in, MutableByteView out, ByteView first_counter) const;

 private:
  using Columns = std::array<std::uint32_t, 4>;
  Columns encrypt_columns(Columns columns) const;
  Columns decrypt_columns(Columns columns) const;

  int round_count_;
  std::uint8_t schedule_[aes_schedule_bytes_max] = {};
  std::uint32_t words_[4 * (aes_round_count_max + 1)] = {};
  // For decryption by tables: the schedule backwards, with the inner rounds' words through
  // InvMixColumns.
  std::uint32_t undo_words_[4 * (aes_round_count_max + 1)] = {};
};

}  // namespace nacre::engine::seeds
