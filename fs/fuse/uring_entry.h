// SPDX-License-Identifier: Apache-2.0
// A place for one request over io_uring: the buffers that the kernel fills with the request and
// empties of the reply.
//
// The header block and the payload are buffers of their own for the kernel; a handler wants one
// run of bytes. So the fixed parts are copied in front of the payload: data is not copied, and a
// WRITE's begins on a page.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "fs/fuse/page_buffer.h"
#include "fs/fuse/uring_protocol.h"

namespace nacre::fs {

class UringThread;

// One of the kernel's queues, which has the requests of one CPU.
struct UringQueue {
  unsigned number = 0;
  unsigned entry_count = 1;
  std::atomic<unsigned> waiting_count{0};  // requests that wait for others of the queue
};

class UringEntry {
 public:
  // id: below UringTable::size_max. Queue and owner outlive the entry. out_of_memory.
  static Result<std::unique_ptr<UringEntry>> create(std::uint32_t id, UringQueue& queue,
                                                    UringThread& owner,
                                                    std::size_t payload_size_bytes);

  // For entering: the header block and the payload.
  const iovec* parts() const { return parts_; }
  UringQueue& queue() const { return queue_; }
  UringThread& owner() const { return owner_; }
  std::uint64_t commit_id() const { return commit_id_; }
  MutableByteView payload();

  // The request that the kernel has put here, under a number of ours in place of the kernel's
  // (uring_token). Empty when it is not a request. On the owner's thread.
  MutableByteView take_request();
  // Puts the reply to the request of that number here. False when that was answered before, or the
  // reply does not fit. Any thread; when it is true the entry can be committed.
  bool put_reply(std::uint64_t token, const iovec* parts, int count) noexcept;
  // The same for a request that could not be handed on.
  void put_error(int error) noexcept;

  bool waits = false;  // for other requests, and counted in its queue; the owner's thread
  UringEntry* next_answered = nullptr;  // the owner's list

 private:
  UringEntry(std::uint32_t id, UringQueue& queue, UringThread& owner, PageBuffer memory);
  void put_header(std::uint32_t length, int error, std::size_t body_size_bytes) noexcept;

  alignas(64) protocol::UringHeader header_ = {};
  const std::uint32_t id_;
  UringQueue& queue_;
  UringThread& owner_;
  PageBuffer memory_;  // a page for the fixed parts, then the payload
  iovec parts_[2];
  std::uint64_t commit_id_ = 0;
  std::uint64_t generation_ = 0;
  std::atomic<std::uint64_t> token_{0};  // of the request that is to be answered, or 0
};

// What takes the place of the kernel's number of a request, so that its reply is led back without a
// look-up: bit 62, which no number of the kernel's has, a count, and the entry's id.
constexpr std::uint64_t uring_token_bit = std::uint64_t{1} << 62;
constexpr unsigned uring_id_bits = 20;
constexpr std::uint64_t uring_token(std::uint32_t id, std::uint64_t generation) {
  return uring_token_bit | (generation << (uring_id_bits + 1) & (uring_token_bit - 1)) |
         std::uint64_t{id} << 1;
}
constexpr bool is_uring_token(std::uint64_t unique) {
  return (unique & uring_token_bit) != 0 && (unique & 1) == 0;
}
constexpr std::uint32_t uring_id(std::uint64_t token) {
  return static_cast<std::uint32_t>(token >> 1) & ((1u << uring_id_bits) - 1);
}

// All entries by id. Any thread; entries stay until the table goes.
class UringTable {
 public:
  explicit UringTable(std::uint32_t size_max);
  ~UringTable();
  std::uint32_t size_max() const { return size_max_; }
  // Null: there is none with this id.
  UringEntry* find(std::uint32_t id) const;
  // out_of_memory, also when the table is full.
  Result<UringEntry*> add(UringQueue& queue, UringThread& owner, std::size_t payload_size_bytes);

 private:
  const std::uint32_t size_max_;
  std::atomic<std::uint32_t> count_{0};
  const std::unique_ptr<std::atomic<UringEntry*>[]> entries_;
};

}  // namespace nacre::fs
