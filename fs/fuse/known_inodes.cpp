// SPDX-License-Identifier: Apache-2.0
// Bits in a file in memory.
#include "fs/fuse/known_inodes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace nacre::fs {

namespace {

constexpr std::uint64_t file_bytes = KnownInodes::number_limit / 8;

tl::unexpected<Error> no_table(int error) {
  return fail(ErrorCode::out_of_memory,
              fmt::format("no memory to share with the watcher: {}", std::strerror(error)));
}

}  // namespace

Result<std::unique_ptr<KnownInodes>> KnownInodes::create() {
  rlimit limit = {};
  // Past this limit a signal would end the process.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < file_bytes) return no_table(EFBIG);
  const int descriptor = memfd_create("nacre-known-inodes", MFD_CLOEXEC);
  if (descriptor < 0) return no_table(errno);
  if (ftruncate(descriptor, static_cast<off_t>(file_bytes)) != 0) {
    const int error = errno;
    close(descriptor);
    return no_table(error);
  }
  return map(descriptor);
}

Result<std::unique_ptr<KnownInodes>> KnownInodes::adopt(int descriptor) {
  return map(descriptor);
}

Result<std::unique_ptr<KnownInodes>> KnownInodes::map(int descriptor) {
  void* words =
      mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (words == MAP_FAILED) {
    const int error = errno;
    close(descriptor);
    return no_table(error);
  }
  // Otherwise a dump of this process would hold all of it.
  madvise(words, file_bytes, MADV_DONTDUMP);
  return std::unique_ptr<KnownInodes>(
      new KnownInodes(descriptor, static_cast<std::uint64_t*>(words)));
}

KnownInodes::~KnownInodes() {
  munmap(words_, file_bytes);
  close(descriptor_);
}

void KnownInodes::add(metadata::InodeNumber inode) noexcept {
  if (inode.value >= number_limit) return;
  const LockGuard lock(lock_of(inode));
  words_[inode.value / word_bits] |= std::uint64_t{1} << inode.value % word_bits;
}

void KnownInodes::forget(metadata::InodeNumber inode, const std::function<bool()>& still_known) {
  const LockGuard lock(lock_of(inode));
  if (still_known() || inode.value >= number_limit) return;
  words_[inode.value / word_bits] &= ~(std::uint64_t{1} << inode.value % word_bits);
}

void KnownInodes::for_each(const std::function<void(metadata::InodeNumber)>& visit) const {
  off_t end = 0;
  for (;;) {
    const off_t begin = lseek(descriptor_, end, SEEK_DATA);
    if (begin < 0) return;
    end = lseek(descriptor_, begin, SEEK_HOLE);
    if (end < 0) return;
    for (auto at = static_cast<std::uint64_t>(begin) / sizeof(std::uint64_t);
         at < static_cast<std::uint64_t>(end) / sizeof(std::uint64_t); ++at) {
      for (std::uint64_t word = words_[at]; word != 0; word &= word - 1) {
        visit(metadata::InodeNumber{at * word_bits +
                                    static_cast<std::uint64_t>(std::countr_zero(word))});
      }
    }
  }
}

}  // namespace nacre::fs
