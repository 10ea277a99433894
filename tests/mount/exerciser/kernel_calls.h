// SPDX-License-Identifier: Apache-2.0
// Reads and writes of several pieces that are all under way at once: by AIO or io_uring. Not
// thread-safe.
#pragma once

#include <liburing.h>
#include <linux/aio_abi.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/mount/exerciser/operation.h"

namespace nacre::tests {

struct Transfer {
  bool writes = false;
  int file = -1;
  std::span<std::byte> bytes;
  off_t offset = 0;
};

class KernelCalls {
 public:
  KernelCalls();
  ~KernelCalls();
  KernelCalls(const KernelCalls&) = delete;
  KernelCalls& operator=(const KernelCalls&) = delete;

  // Why the kernel does not offer them here; empty: it does.
  const std::string& why_no_aio() const { return why_no_aio_; }
  const std::string& why_no_uring() const { return why_no_uring_; }

  static constexpr std::size_t piece_count_max = 8;
  // Transfers up to piece_count_max pieces. For each it returns what read(2) would return, or a
  // negative error number.
  std::vector<ssize_t> transfer(Channel channel, std::span<const Transfer> pieces);

 private:
  std::vector<ssize_t> by_aio(std::span<const Transfer> pieces);
  std::vector<ssize_t> by_uring(std::span<const Transfer> pieces);

  aio_context_t context_ = 0;
  io_uring ring_{};
  std::string why_no_aio_, why_no_uring_;
};

}  // namespace nacre::tests
