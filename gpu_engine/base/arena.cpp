// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/base/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace nacre::engine {
namespace {

constexpr std::size_t huge_page_size_bytes = 2u << 20;

void unmap(Byte* data, std::size_t size) {
  munmap(data, size);
}

// Wipes memory that is about to be freed. If it begins at a page, only pages that are in memory are
// wiped: the others were never written, or lie in the swap space, and wiping them would bring them
// into memory.
void wipe_last(MutableByteView memory) {
  static const auto page_size_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t page_count = memory.size() / page_size_bytes;
  std::vector<unsigned char> present;
  bool is_known = false;
  try {
    present.resize(page_count);
    is_known = mincore(memory.data(), page_count * page_size_bytes, present.data()) == 0;
  } catch (const std::bad_alloc&) {
    is_known = false;
  }
  if (!is_known) return wipe(memory);
  for (std::size_t page = 0; page < page_count;) {
    const auto begin = present.begin() + static_cast<std::ptrdiff_t>(page);
    const auto differs = [&](unsigned char other) { return (other & 1) != (*begin & 1); };
    const std::size_t end =
        static_cast<std::size_t>(std::find_if(begin, present.end(), differs) - present.begin());
    if ((*begin & 1) != 0)
      wipe(memory.subspan(page * page_size_bytes, (end - page) * page_size_bytes));
    page = end;
  }
  wipe(memory.subspan(page_count * page_size_bytes));
}

}  // namespace

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      release_(std::exchange(other.release_, nullptr)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  // taken frees, at once, what this arena held.
  Arena taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(release_, taken.release_);
  return *this;
}

Arena Arena::adopt(Arena&& arena, void (*release)(Byte*, std::size_t)) {
  Arena adopted(std::move(arena));
  adopted.release_ = release;
  return adopted;
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  wipe_last({data_, size_});
  release_(data_, size_);
}

Result<Arena> allocate_host_arena(std::size_t size_bytes) {
  if (size_bytes == 0) return Arena();
  void* pages =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return fail(ErrorCode::out_of_memory,
                fmt::format("no memory for a payload arena of {} bytes", size_bytes));
  madvise(pages, size_bytes, MADV_DONTDUMP);
  if (size_bytes >= huge_page_size_bytes) madvise(pages, size_bytes, MADV_HUGEPAGE);
  return Arena(static_cast<Byte*>(pages), size_bytes, unmap);
}

}  // namespace nacre::engine
