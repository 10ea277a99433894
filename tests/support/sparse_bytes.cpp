// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sparse_bytes.h"

#include <algorithm>
#include <atomic>

namespace nacre::tests {

std::uint64_t SparseBytes::next_owner() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

SparseBytes SparseBytes::share() {
  SparseBytes copy;
  copy.size_ = size_;
  copy.pages_ = pages_;
  owner_ = next_owner();
  return copy;
}

SparseBytes::Page& SparseBytes::writable_page(std::size_t index) {
  std::shared_ptr<Page>& page = pages_[index];
  if (!page) {
    page = std::make_shared<Page>(Page{.owner = owner_, .bytes = {}});
  } else if (page->owner != owner_) {
    page = std::make_shared<Page>(Page{.owner = owner_, .bytes = page->bytes});
  }
  return *page;
}

std::size_t SparseBytes::read(std::uint64_t offset, MutableByteView out) const {
  if (offset >= size_) return 0;
  const std::size_t size = std::min<std::uint64_t>(out.size(), size_ - offset);
  for (std::size_t done = 0; done < size;) {
    const std::size_t within = (offset + done) % page_size_bytes;
    const std::size_t step = std::min(size - done, page_size_bytes - within);
    const std::shared_ptr<Page>& page = pages_[(offset + done) / page_size_bytes];
    if (page) {
      std::memcpy(out.data() + done, page->bytes.data() + within, step);
    } else {
      std::memset(out.data() + done, 0, step);
    }
    done += step;
  }
  return size;
}

void SparseBytes::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  if (offset + bytes.size() > size_) resize(offset + bytes.size());
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t within = (offset + done) % page_size_bytes;
    const std::size_t step = std::min(bytes.size() - done, page_size_bytes - within);
    Page& page = writable_page((offset + done) / page_size_bytes);
    std::memcpy(page.bytes.data() + within, bytes.data() + done, step);
    done += step;
  }
}

void SparseBytes::resize(std::uint64_t size) {
  pages_.resize((size + page_size_bytes - 1) / page_size_bytes);
  const std::size_t within = size % page_size_bytes;
  if (size < size_ && within != 0 && pages_.back()) {
    Page& last = writable_page(pages_.size() - 1);
    std::memset(last.bytes.data() + within, 0, page_size_bytes - within);
  }
  size_ = size;
}

void SparseBytes::take_pages(SparseBytes& other, std::uint64_t begin, std::uint64_t end) {
  end = std::min(end, size_);
  if (begin >= end) return;
  for (std::size_t i = begin / page_size_bytes; i <= (end - 1) / page_size_bytes; ++i) {
    pages_[i] = other.pages_[i];
  }
  other.owner_ = next_owner();
}

}  // namespace nacre::tests
