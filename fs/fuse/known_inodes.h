// SPDX-License-Identifier: Apache-2.0
// The inodes that the kernel knows, in memory that outlives the process (an unnamed file). If the
// daemon was killed, the watcher ends the connection and must make the kernel forget these inodes.
// Each inode takes one bit, and a page exists only if a bit in it was set. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

class KnownInodes {
 public:
  // Inodes with this number or a higher one are not remembered. Only a volume that has made 8
  // billion files has one.
  static constexpr std::uint64_t number_limit = std::uint64_t{1} << 33;

  static Result<std::unique_ptr<KnownInodes>> create();
  // The same inodes in another process, by the descriptor, which this object then owns.
  static Result<std::unique_ptr<KnownInodes>> adopt(int descriptor);
  KnownInodes(const KnownInodes&) = delete;
  KnownInodes& operator=(const KnownInodes&) = delete;
  ~KnownInodes();

  int descriptor() const { return descriptor_; }
  // Called before the answer that tells the kernel of the inode.
  void add(metadata::InodeNumber inode) noexcept;
  // Removes the inode unless still_known says that the kernel got to know it again.
  void forget(metadata::InodeNumber inode, const std::function<bool()>& still_known);
  void for_each(const std::function<void(metadata::InodeNumber)>& visit) const;

 private:
  static constexpr unsigned word_bits = 64;
  static constexpr std::size_t lock_count = 64;
  KnownInodes(int descriptor, std::uint64_t* words) : descriptor_(descriptor), words_(words) {}
  static Result<std::unique_ptr<KnownInodes>> map(int descriptor);
  // Each guards every 64th word, which the analysis cannot say.
  Mutex& lock_of(metadata::InodeNumber inode) {
    return locks_[inode.value / word_bits % lock_count];
  }

  const int descriptor_;
  std::uint64_t* const words_;
  std::array<Mutex, lock_count> locks_;
};

}  // namespace nacre::fs
