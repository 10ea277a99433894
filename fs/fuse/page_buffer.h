// SPDX-License-Identifier: Apache-2.0
// Page-aligned memory for requests and replies. It holds file content, so core dumps leave it out.
#pragma once

#include <cstddef>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// Owns its pages. They take memory only once they are touched.
class PageBuffer {
 public:
  static Result<PageBuffer> allocate(std::size_t size_bytes);  // out_of_memory
  PageBuffer() = default;
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;
  ~PageBuffer();

  MutableByteView view() { return {data_, size_}; }

 private:
  PageBuffer(Byte* data, std::size_t size) : data_(data), size_(size) {}
  Byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// This thread's buffer for the data of one reply. It is the buffer that was lent to the thread, or
// one of protocol::data_size_bytes_max bytes that is made at the first call. Empty if there is no
// memory for it.
MutableByteView reply_buffer();
// Data that is put into this buffer needs no copy on its way to the kernel. An empty buffer ends
// the loan.
void lend_reply_buffer(MutableByteView buffer);

}  // namespace nacre::fs
