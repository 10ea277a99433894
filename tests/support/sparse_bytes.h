// SPDX-License-Identifier: Apache-2.0
// The bytes of a file in memory, in pages that copies share until one of them writes.
//
// Invariants: a page that is not there reads as zeros; in the last page, bytes past the size are
// zero; a page is written in place only by the object that made it since it was last copied, so a
// copy may be read and written by another thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::tests {

class SparseBytes {
 public:
  SparseBytes() : owner_(next_owner()) {}
  SparseBytes(SparseBytes&&) = default;
  SparseBytes& operator=(SparseBytes&&) = default;
  SparseBytes(const SparseBytes&) = delete;
  SparseBytes& operator=(const SparseBytes&) = delete;

  // A copy in time that depends on the number of pages, not of bytes. Not const: from here on this
  // object copies pages before it writes them.
  SparseBytes share();
  std::uint64_t size() const { return size_; }
  // Reads up to out.size() bytes; fewer only at the end.
  std::size_t read(std::uint64_t offset, MutableByteView out) const;
  void write(std::uint64_t offset, ByteView bytes);  // grows where needed
  void resize(std::uint64_t size);                   // new bytes are zeros
  // Takes the pages that hold [begin, end) from other, whose size must be the same.
  void take_pages(SparseBytes& other, std::uint64_t begin, std::uint64_t end);

 private:
  static constexpr std::size_t page_size_bytes = 16u << 10;
  struct Page {
    std::uint64_t owner;
    std::array<Byte, page_size_bytes> bytes;
  };

  static std::uint64_t next_owner();
  Page& writable_page(std::size_t index);

  std::uint64_t owner_;
  std::uint64_t size_ = 0;
  std::vector<std::shared_ptr<Page>> pages_;
};

}  // namespace nacre::tests
