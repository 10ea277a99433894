// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/uring_entry.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "fs/fuse/protocol.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

namespace {

constexpr std::size_t page_size_bytes = 4096;
static_assert(sizeof(fuse_in_header) + sizeof(protocol::UringHeader::operation) <= page_size_bytes);

}  // namespace

UringEntry::UringEntry(std::uint32_t id, UringQueue& queue, UringThread& owner, PageBuffer memory)
    : id_(id), queue_(queue), owner_(owner), memory_(std::move(memory)) {
  const MutableByteView buffer = payload();
  parts_[0] = {&header_, sizeof header_};
  parts_[1] = {buffer.data(), buffer.size()};
}

Result<std::unique_ptr<UringEntry>> UringEntry::create(std::uint32_t id, UringQueue& queue,
                                                       UringThread& owner,
                                                       std::size_t payload_size_bytes) {
  NACRE_ASSIGN(PageBuffer memory, PageBuffer::allocate(page_size_bytes + payload_size_bytes));
  std::unique_ptr<UringEntry> entry(new (std::nothrow)
                                        UringEntry(id, queue, owner, std::move(memory)));
  if (!entry) return fail(ErrorCode::out_of_memory);
  return entry;
}

MutableByteView UringEntry::payload() {
  return memory_.view().subspan(page_size_bytes);
}

MutableByteView UringEntry::take_request() {
  NACRE_CHECK(token_.load(std::memory_order_acquire) == 0,
              "entry {} brings a request before its last one was answered", id_);
  auto header = load_le<fuse_in_header>(header_.in_out);
  commit_id_ = header_.state.commit_id;
  const std::size_t data_size = header_.state.payload_size_bytes;
  const std::size_t size = header.len;
  if (size < sizeof header + data_size || data_size > payload().size()) return {};
  const std::size_t fixed_size = size - sizeof header - data_size;
  if (fixed_size > sizeof header_.operation) return {};
  const std::uint64_t token = uring_token(id_, ++generation_);
  header.unique = token;
  Byte* begin = payload().data() - fixed_size - sizeof header;
  store_le(begin, header);
  std::memcpy(begin + sizeof header, header_.operation, fixed_size);
  token_.store(token, std::memory_order_release);
  return {begin, size};
}

bool UringEntry::put_reply(std::uint64_t token, const iovec* parts, int count) noexcept {
  std::size_t size = 0;
  for (int i = 0; i < count; ++i)
    size += parts[i].iov_len;
  const MutableByteView room = payload();
  if (count < 1 || parts[0].iov_len != sizeof(fuse_out_header) ||
      size - sizeof(fuse_out_header) > room.size()) {
    return false;
  }
  if (!token_.compare_exchange_strong(token, 0, std::memory_order_acq_rel)) return false;
  const auto reply = load_le<fuse_out_header>(static_cast<const Byte*>(parts[0].iov_base));
  Byte* to = room.data();
  for (int i = 1; i < count; ++i) {
    // Data that was made in the buffer lent for it is already at its place.
    if (parts[i].iov_len != 0 && parts[i].iov_base != to)
      std::memmove(to, parts[i].iov_base, parts[i].iov_len);
    to += parts[i].iov_len;
  }
  put_header(reply.len, reply.error, size - sizeof reply);
  return true;
}

void UringEntry::put_error(int error) noexcept {
  token_.store(0, std::memory_order_release);
  put_header(sizeof(fuse_out_header), -error, 0);
}

void UringEntry::put_header(std::uint32_t length, int error, std::size_t body_size_bytes) noexcept {
  fuse_out_header header = {};
  header.len = length;
  header.error = error;
  header.unique = commit_id_;
  std::memcpy(header_.in_out, &header, sizeof header);
  header_.state.payload_size_bytes = static_cast<std::uint32_t>(body_size_bytes);
}

UringTable::UringTable(std::uint32_t size_max)
    : size_max_(std::min(size_max, 1u << uring_id_bits)),
      entries_(std::make_unique<std::atomic<UringEntry*>[]>(size_max_)) {}

UringTable::~UringTable() {
  for (std::uint32_t id = 0; id < size_max_; ++id)
    delete entries_[id].load();
}

UringEntry* UringTable::find(std::uint32_t id) const {
  return id < size_max_ ? entries_[id].load(std::memory_order_acquire) : nullptr;
}

Result<UringEntry*> UringTable::add(UringQueue& queue, UringThread& owner,
                                    std::size_t payload_size_bytes) {
  const std::uint32_t id = count_.fetch_add(1);
  if (id >= size_max_) {
    count_.fetch_sub(1);
    return fail(ErrorCode::out_of_memory, "no room for more entries");
  }
  auto entry = UringEntry::create(id, queue, owner, payload_size_bytes);
  if (!entry) return tl::unexpected(entry.error());
  entries_[id].store(entry->get(), std::memory_order_release);
  return entry->release();
}

}  // namespace nacre::fs
