// SPDX-License-Identifier: Apache-2.0
// A disk on which operations of one kind do not end while it is closed, for MemoryBacking::watch().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace nacre::tests {

// Thread-safe. Open at first.
class DiskGate {
 public:
  // operations: change_* of memory_backing.h. path_prefix: the beginning of the paths on which they
  // are held up.
  explicit DiskGate(std::uint32_t operations, std::string path_prefix = "")
      : operations_(operations), path_prefix_(std::move(path_prefix)) {}

  void pass(std::uint32_t operation, std::string_view path) {
    if ((operation & operations_) == 0 || !path.starts_with(path_prefix_)) return;
    std::unique_lock lock(mutex_);
    ++waiting_count_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
    --waiting_count_;
  }
  void set_open(bool open) {
    const std::lock_guard lock(mutex_);
    is_open_ = open;
    changed_.notify_all();
  }
  // Waits until an operation waits at the closed gate.
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_count_ > 0; });
  }

 private:
  const std::uint32_t operations_;
  const std::string path_prefix_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int waiting_count_ = 0;
};

}  // namespace nacre::tests
