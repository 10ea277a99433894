// SPDX-License-Identifier: Apache-2.0
// Open files. Interrupted and partial system calls are completed here, so no caller sees them.
#include "metadata/backing/posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <random>

#include "metadata/backing/posix_error.h"

namespace nacre::metadata {

namespace {

constexpr std::uint64_t posix_size_max = std::numeric_limits<off_t>::max();
constexpr std::size_t noise_piece_bytes = 256u << 10;
constexpr std::size_t page_size_bytes = 4096;  // a multiple of every device's sector
constexpr std::size_t past_cache_bytes_min = 256u << 10;
constexpr std::size_t direct_step_bytes = 1u << 20;

// Repeats the call until no signal interrupts it. -1 sets errno.
template <typename Call>
auto uninterrupted(Call call) {
  decltype(call()) outcome;
  do {
    outcome = call();
  } while (outcome < 0 && errno == EINTR);
  return outcome;
}

// Reads the bytes of the pieces, one piece after the other.
class PieceReader {
 public:
  explicit PieceReader(std::span<const ByteView> pieces) : pieces_(pieces) {}

  void read(MutableByteView out) {
    while (!out.empty()) {
      const ByteView rest = pieces_.front().subspan(taken_);
      const std::size_t size = std::min(rest.size(), out.size());
      std::copy_n(rest.begin(), size, out.begin());
      out = out.subspan(size);
      taken_ += size;
      if (size < rest.size()) continue;
      pieces_ = pieces_.subspan(1);
      taken_ = 0;
    }
  }

 private:
  std::span<const ByteView> pieces_;
  std::size_t taken_ = 0;  // bytes taken from the first piece
};

class PosixFile final : public BackingFile {
 public:
  PosixFile(FileDescriptor descriptor, std::string where)
      : descriptor_(std::move(descriptor)), where_(std::move(where)) {}

  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) override {
    NACRE_TRY(check_range(offset, out.size()));
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t count = uninterrupted([&] {
        return pread(descriptor_.get(), out.data() + done, out.size() - done,
                     static_cast<off_t>(offset + done));
      });
      if (count < 0) return fail_errno(errno, where_);
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }

  Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) override {
    std::vector<iovec> vectors;
    vectors.reserve(pieces.size());
    std::uint64_t left = 0;
    for (const ByteView piece : pieces) {
      if (piece.empty()) continue;
      // writev() only reads, although its type takes a pointer to writable bytes.
      vectors.push_back({const_cast<Byte*>(piece.data()), piece.size()});
      left += piece.size();
    }
    NACRE_TRY(check_range(offset, left));
    std::span<iovec> rest = vectors;
    while (!rest.empty()) {
      const auto count = static_cast<int>(std::min<std::size_t>(rest.size(), IOV_MAX));
      const ssize_t written = uninterrupted([&] {
        return pwritev(descriptor_.get(), rest.data(), count, static_cast<off_t>(offset));
      });
      if (written < 0) return fail_errno(errno, where_);
      if (written == 0) return fail_errno(EIO, where_);
      offset += static_cast<std::uint64_t>(written);
      rest = drop_front(rest, static_cast<std::size_t>(written));
    }
    return {};
  }

  // Whole pages bypass the cache, from memory that is aligned as devices need it. Partial pages at
  // both ends go through the cache, where the next call completes the last one.
  Result<void> write_past_cache(std::uint64_t offset, std::span<const ByteView> pieces) override {
    std::uint64_t left = 0;
    for (const ByteView piece : pieces)
      left += piece.size();
    // O_DIRECT is a property of an open descriptor, so the file is opened a second time. The second
    // descriptor is closed after the call, so that an open segment takes only one.
    FileDescriptor direct;
    if (left >= past_cache_bytes_min) direct = open_past_cache();
    if (!direct) return write(offset, pieces);
    NACRE_TRY(check_range(offset, left));
    const std::unique_ptr<Byte, decltype(&std::free)> memory(
        static_cast<Byte*>(std::aligned_alloc(page_size_bytes, direct_step_bytes)), &std::free);
    if (!memory) return write(offset, pieces);
    PieceReader reader(pieces);
    while (left > 0) {
      const std::uint64_t to_page = page_size_bytes - offset % page_size_bytes;
      const bool is_direct = to_page == page_size_bytes && left >= page_size_bytes;
      const auto size = static_cast<std::size_t>(
          is_direct ? std::min<std::uint64_t>(direct_step_bytes, left - left % page_size_bytes)
                    : std::min(to_page, left));
      const MutableByteView step(memory.get(), size);
      reader.read(step);
      std::size_t done = 0;
      if (is_direct && direct) {
        const ssize_t written = uninterrupted(
            [&] { return pwrite(direct.get(), step.data(), size, static_cast<off_t>(offset)); });
        // The write through the cache below reports the error if it lasts.
        if (written < 0) direct = {};
        done = static_cast<std::size_t>(std::max<ssize_t>(written, 0));
      }
      if (done < size) NACRE_TRY(BackingFile::write(offset + done, step.subspan(done)));
      offset += size;
      left -= size;
    }
    return {};
  }

  Result<void> sync() override {
    if (uninterrupted([&] { return fdatasync(descriptor_.get()); }) != 0) {
      return fail_errno(errno, where_);
    }
    return {};
  }

  void start_writeback(std::uint64_t offset, std::uint64_t size) override {
    if (size == 0 || !check_range(offset, size)) return;
    // This is a hint, so its result is ignored. sync() reports errors of the write-back.
    static_cast<void>(sync_file_range(descriptor_.get(), static_cast<off_t>(offset),
                                      static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE));
  }

  void advise(std::uint64_t offset, std::uint64_t size, bool will_need) override {
    if (size == 0 || !check_range(offset, size)) return;
    static_cast<void>(posix_fadvise(descriptor_.get(), static_cast<off_t>(offset),
                                    static_cast<off_t>(size),
                                    will_need ? POSIX_FADV_WILLNEED : POSIX_FADV_DONTNEED));
  }

  Result<std::uint64_t> size() override {
    struct stat status = {};
    if (fstat(descriptor_.get(), &status) != 0) return fail_errno(errno, where_);
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<void> truncate(std::uint64_t size) override {
    NACRE_TRY(check_range(size, 0));
    if (uninterrupted([&] { return ftruncate(descriptor_.get(), static_cast<off_t>(size)); }) !=
        0) {
      return fail_errno(errno, where_);
    }
    return {};
  }

  Result<void> allocate(std::uint64_t size) override {
    NACRE_TRY(check_range(size, 0));
    if (size == 0) return {};
    if (uninterrupted(
            [&] { return fallocate(descriptor_.get(), 0, 0, static_cast<off_t>(size)); }) == 0) {
      return {};
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS) return fail_errno(errno, where_);
    return write_noise(size);
  }

  bool is_nameless() override {
    struct stat status = {};
    return fstat(descriptor_.get(), &status) == 0 && status.st_nlink == 0;
  }

 private:
  // If the file system cannot allocate room, the file is filled with random bytes, which do not
  // shrink when the file system compresses them.
  Result<void> write_noise(std::uint64_t size) {
    NACRE_ASSIGN(std::uint64_t offset, this->size());
    Bytes noise(noise_piece_bytes);
    std::minstd_rand random(static_cast<unsigned>(offset + 1));
    while (offset < size) {
      for (Byte& byte : noise)
        byte = static_cast<Byte>(random() >> 8);
      const std::size_t count = std::min<std::uint64_t>(noise.size(), size - offset);
      NACRE_TRY(BackingFile::write(offset, ByteView(noise).first(count)));
      offset += count;
    }
    return sync();
  }

  Result<void> check_range(std::uint64_t offset, std::uint64_t size) const {
    if (offset <= posix_size_max && size <= posix_size_max - offset) return {};
    return fail_errno(EFBIG, where_);
  }

  FileDescriptor open_past_cache() const {
    return FileDescriptor(uninterrupted([&] {
      return open(fmt::format("/proc/self/fd/{}", descriptor_.get()).c_str(),
                  O_WRONLY | O_DIRECT | O_CLOEXEC);
    }));
  }

  static std::span<iovec> drop_front(std::span<iovec> vectors, std::size_t size) {
    while (size > 0) {
      iovec& first = vectors.front();
      const std::size_t step = std::min(size, first.iov_len);
      first.iov_base = static_cast<Byte*>(first.iov_base) + step;
      first.iov_len -= step;
      size -= step;
      if (first.iov_len == 0) vectors = vectors.subspan(1);
    }
    return vectors;
  }

  const FileDescriptor descriptor_;
  const std::string where_;
};

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) close(number_);
}

FileDescriptor open_at(int folder, const std::string& path, int flags, unsigned mode) {
  constexpr int always = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
  return FileDescriptor(
      uninterrupted([&] { return openat(folder, path.c_str(), flags | always, mode); }));
}

Result<FileDescriptor> open_regular_file(const std::string& path) {
  FileDescriptor file(uninterrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); }));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno(errno, path);
  if (S_ISDIR(status.st_mode)) return fail(ErrorCode::is_directory, path + " is a folder");
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_argument, path + " is no regular file");
  }
  const int flags = ::fcntl(file.get(), F_GETFL);
  if (flags < 0 || ::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return fail_errno(errno, path);
  }
  return file;
}

std::unique_ptr<BackingFile> make_posix_file(FileDescriptor descriptor, std::string where) {
  return std::make_unique<PosixFile>(std::move(descriptor), std::move(where));
}

}  // namespace nacre::metadata
