// SPDX-License-Identifier: Apache-2.0
// A place for one request over io_uring: the buffers that the kernel fills with the request and
// from which it takes the reply.
//
// For the kernel the header block and the payload are separate buffers, but a handler needs one run
// of bytes. So the fixed parts are copied to the place before the payload. Data is not copied, and
// the data of a WRITE begins on a page.
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

// One of the kernel's queues. It has the requests of one CPU.
struct UringQueue {
  unsigned number = 0;
  unsigned entry_count = 1;
  std::atomic<unsigned> waiting_count{0};  // requests that wait for others of the queue
};

class UringEntry {
 public:
  // id is below UringTable::size_max. Queue and owner outlive the entry. Error: out_of_memory.
  static Result<std::unique_ptr<UringEntry>> create(std::uint32_t id, UringQueue& queue,
                                                    UringThread& owner,
                                                    std::size_t payload_size_bytes);

  // For entering the entry: the header block and the payload.
  const iovec* parts() const { return parts_; }
  UringQueue& queue() const { return queue_; }
  UringThread& owner() const { return owner_; }
  std::uint64_t commit_id() const { return commit_id_; }
  MutableByteView payload();

  // Returns the request that the kernel has put here, with a number of this class in place of the
  // kernel's (uring_token). Empty if it is not a request. Called on the owner's thread.
  MutableByteView take_request();
  // Puts the reply to the request of that number here. Returns false if the request was answered
  // before, or if the reply does not fit. If it returns true, the entry can be committed. Called on
  // any thread.
  bool put_reply(std::uint64_t token, const iovec* parts, int count) noexcept;
  // The same for a request that could not be handed on.
  void put_error(int error) noexcept;

  // Whether it waits for other requests, and is counted in its queue. Used by the owner's thread.
  bool waits = false;
  UringEntry* next_answered = nullptr;  // in the owner's list

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
  std::atomic<std::uint64_t> token_{0};  // that of the request to be answered, or 0
};

// The number that replaces the kernel's number of a request, so that its reply finds the entry
// without a look-up: bit 62, which no number of the kernel has, a count, and the entry's id.
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

// All entries by id. Used on any thread. Entries stay until the table is destroyed.
class UringTable {
 public:
  explicit UringTable(std::uint32_t size_max);
  ~UringTable();
  std::uint32_t size_max() const { return size_max_; }
  // Null if there is none with this id.
  UringEntry* find(std::uint32_t id) const;
  // Error: out_of_memory, also if the table is full.
  Result<UringEntry*> add(UringQueue& queue, UringThread& owner, std::size_t payload_size_bytes);

 private:
  const std::uint32_t size_max_;
  std::atomic<std::uint32_t> count_{0};
  const std::unique_ptr<std::atomic<UringEntry*>[]> entries_;
};

}  // namespace nacre::fs
