// SPDX-License-Identifier: Apache-2.0
// Pages from mmap.
#include "fs/fuse/page_buffer.h"

#include <sys/mman.h>

#include <utility>

#include "fs/fuse/protocol.h"

namespace nacre::fs {

Result<PageBuffer> PageBuffer::allocate(std::size_t size_bytes) {
  void* data =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return fail(ErrorCode::out_of_memory, "no memory for a request buffer");
  }
  // Only a request: if the kernel cannot leave it out, PR_SET_DUMPABLE still forbids the dump.
  madvise(data, size_bytes, MADV_DONTDUMP);
  return PageBuffer(static_cast<Byte*>(data), size_bytes);
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

namespace {

thread_local MutableByteView lent;

}  // namespace

void lend_reply_buffer(MutableByteView buffer) {
  lent = buffer;
}

MutableByteView reply_buffer() {
  if (!lent.empty()) return lent;
  thread_local PageBuffer buffer;
  if (buffer.view().empty()) {
    if (auto made = PageBuffer::allocate(protocol::data_size_bytes_max)) buffer = std::move(*made);
  }
  return buffer.view();
}

}  // namespace nacre::fs
