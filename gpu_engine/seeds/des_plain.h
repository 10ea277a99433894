// SPDX-License-Identifier: Apache-2.0
// DES (FIPS 46-3) bit by bit from the standard's own tables, in ECB: the kind of code that the
// project report of Guan and Li compares its GPU with. For measurements only.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::seeds {

// Immutable, so thread-safe. The key has 8 bytes; their parity bits are ignored.
class PlainDes {
 public:
  explicit PlainDes(ByteView key);
  // Whole blocks of 8 bytes; out is as long as in, or longer.
  void encrypt(ByteView in, MutableByteView out) const;
  void decrypt(ByteView in, MutableByteView out) const;

 private:
  std::uint64_t run_rounds(std::uint64_t block, bool encrypts) const;
  std::array<std::uint64_t, 16> round_keys_;
};

}  // namespace nacre::engine::seeds
