// SPDX-License-Identifier: Apache-2.0
// The calls themselves, and what each of them does to the array.
#include "tests/mount/exerciser/exercised_files.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace nacre::tests {

namespace {

constexpr std::uint64_t page_size = 4096;
constexpr std::uint64_t sector_size = 512;  // what O_DIRECT is to be a multiple of elsewhere
constexpr std::size_t shown_byte_count = 16;

struct Wrong {
  std::string what;
};

[[noreturn]] void fail_call(std::string_view call, int error = errno) {
  throw Wrong{fmt::format("{}: {}", call, std::strerror(error))};
}

void expect_done(std::string_view call, int result) {
  if (result != 0) fail_call(call);
}

off_t to_offset(std::uint64_t value) {
  return static_cast<off_t>(value);
}

// The number of bytes of [offset, offset + size) that lie below the limit.
std::uint64_t clamp(std::uint64_t offset, std::uint64_t size, std::uint64_t limit) {
  return offset >= limit ? 0 : std::min(size, limit - offset);
}

std::string shown(std::span<const std::byte> bytes) {
  std::string hex, text;
  for (const std::byte byte : bytes.first(std::min(bytes.size(), shown_byte_count))) {
    const auto value = std::to_integer<unsigned>(byte);
    hex += fmt::format("{:02x}", value);
    text += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
  }
  return fmt::format("{} «{}»", hex, text);
}

const char* name_of(const Transfer& transfer) {
  return transfer.writes ? "write" : "read";
}

std::vector<Transfer> pieces_of(const Transfer& whole, std::size_t count, std::uint64_t boundary) {
  count = std::clamp<std::size_t>(count, 1, KernelCalls::piece_count_max);
  const std::size_t size = whole.bytes.size();
  const std::size_t piece_size = (size / count / boundary + 1) * boundary;
  std::vector<Transfer> pieces;
  for (std::size_t at = 0; at < size; at += pieces.back().bytes.size()) {
    Transfer piece = whole;
    piece.bytes = whole.bytes.subspan(at, std::min(piece_size, size - at));
    piece.offset = whole.offset + static_cast<off_t>(at);
    pieces.push_back(piece);
  }
  return pieces;
}

// A call may transfer fewer bytes than requested. Then this goes on with the rest; for a read, up
// to the end that the file should have.
ssize_t finish(const Transfer& piece, ssize_t result, off_t file_end) {
  ssize_t done = result;
  while (result > 0 && static_cast<std::size_t>(done) < piece.bytes.size() &&
         (piece.writes || piece.offset + done < file_end)) {
    const std::span<std::byte> rest = piece.bytes.subspan(static_cast<std::size_t>(done));
    result = piece.writes ? ::pwrite(piece.file, rest.data(), rest.size(), piece.offset + done)
                          : ::pread(piece.file, rest.data(), rest.size(), piece.offset + done);
    if (result < 0) result = -errno;
    done += std::max<ssize_t>(result, 0);
  }
  if (result < 0) {
    fail_call(fmt::format("{} at {}", name_of(piece), piece.offset), static_cast<int>(-result));
  }
  return done;
}

class Mapping {
 public:
  Mapping(int file, std::uint64_t offset, std::uint64_t size, int protection)
      : skipped_(offset % page_size), size_(size + skipped_) {
    memory_ = ::mmap(nullptr, size_, protection, MAP_SHARED, file, to_offset(offset - skipped_));
    if (memory_ == MAP_FAILED) fail_call("mmap");
  }
  ~Mapping() { ::munmap(memory_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(memory_) + skipped_, size_ - skipped_};
  }
  // To the end of the last page.
  std::span<std::byte> rest() const {
    const std::size_t end = (size_ + page_size - 1) / page_size * page_size;
    return {static_cast<std::byte*>(memory_) + size_, end - size_};
  }
  void write_out() const { expect_done("msync", ::msync(memory_, size_, MS_SYNC)); }

 private:
  std::size_t skipped_, size_;
  void* memory_ = nullptr;
};

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : file_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (file_ < 0) fail_call("open");
  }
  ~Descriptor() { ::close(file_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return file_; }  // NOLINT(google-explicit-constructor)

 private:
  int file_;
};

}  // namespace

ExercisedFiles::ExercisedFiles(std::string path, std::size_t count, ExercisedOptions options,
                               KernelCalls& calls)
    : options_(std::move(options)), calls_(calls) {
  for (std::size_t i = 0; i < count; ++i) {
    files_.push_back(std::make_unique<File>());
    files_.back()->path = fmt::format("{}.{}", path, i);
  }
}

ExercisedFiles::~ExercisedFiles() {
  const bool keeps = keeps_;
  keep();
  for (const auto& file : files_) {
    if (!keeps) ::unlink(file->path.c_str());
  }
}

void ExercisedFiles::keep() {
  keeps_ = true;
  for (const auto& file : files_) {
    for (int* descriptor : {&file->plain, &file->direct}) {
      if (*descriptor >= 0) ::close(*descriptor);
      *descriptor = -1;
    }
  }
}

std::optional<std::string> ExercisedFiles::run(const Operation& operation) {
  if (operation.file >= count() || operation.to_file >= count()) return "there is no such file";
  File& file = *files_[operation.file];
  try {
    if (file.plain < 0) open(file);
    switch (operation.kind) {
      case Kind::read:
        read(file, operation);
        break;
      case Kind::write:
        write(file, operation);
        break;
      case Kind::mapped_read:
        mapped_read(file, operation);
        break;
      case Kind::mapped_write:
        mapped_write(file, operation);
        break;
      case Kind::truncate:
        truncate(file, std::min(operation.size, options_.file_size_max));
        break;
      case Kind::allocate:
      case Kind::punch:
      case Kind::zero:
        allocate(file, operation);
        break;
      case Kind::copy:
        copy(file, *files_[operation.to_file], operation);
        break;
      case Kind::fsync:
        expect_done("fsync", ::fsync(file.plain));
        break;
      case Kind::fdatasync:
        expect_done("fdatasync", ::fdatasync(file.plain));
        break;
      case Kind::reopen:
        close(file);
        open(file);
        break;
      case Kind::drop:
        if (const int error = ::posix_fadvise(file.plain, 0, 0, POSIX_FADV_DONTNEED); error != 0) {
          fail_call("posix_fadvise", error);
        }
        break;
      case Kind::check:
        check(file, operation);
        break;
      case Kind::upkeep:
        upkeep();
        break;
    }
    if (operation.kind != Kind::upkeep) expect_size(file);
  } catch (const Wrong& wrong) {
    return fmt::format("{}: {}", file.path, wrong.what);
  }
  return std::nullopt;
}

void ExercisedFiles::open(File& file) {
  const int more_flags = file.exists ? 0 : O_CREAT | O_TRUNC;
  file.plain = ::open(file.path.c_str(), O_RDWR | O_CLOEXEC | more_flags, 0600);
  if (file.plain < 0) fail_call("open");
  file.exists = true;
}

void ExercisedFiles::close(File& file) {
  for (int* descriptor : {&file.plain, &file.direct}) {
    if (*descriptor >= 0 && ::close(*descriptor) != 0) fail_call("close");
    *descriptor = -1;
  }
}

int ExercisedFiles::descriptor(File& file, Channel channel) {
  if (!is_direct(channel)) return file.plain;
  if (file.direct < 0) {
    file.direct = ::open(file.path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    if (file.direct < 0) fail_call("open with O_DIRECT");
  }
  return file.direct;
}

std::span<std::byte> ExercisedFiles::buffer(std::size_t size) {
  if (size > buffer_size_) {
    buffer_size_ = (size + page_size - 1) / page_size * page_size;
    buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(page_size, buffer_size_)));
    if (buffer_ == nullptr) fail_call("aligned_alloc", ENOMEM);
  }
  return {buffer_.get(), size};
}

void ExercisedFiles::read(File& file, const Operation& operation) {
  if (operation.size == 0) return;
  const std::span<std::byte> found = buffer(operation.size);
  const std::uint64_t expected = clamp(operation.offset, operation.size, file.expected.size());
  const Transfer whole{.writes = false,
                       .file = descriptor(file, operation.channel),
                       .bytes = found,
                       .offset = to_offset(operation.offset)};
  const std::size_t size = transfer(whole, file, operation, options_.read_boundary);
  if (size != expected) {
    throw Wrong{fmt::format("read {} bytes at {} of a file of {}: {} came", operation.size,
                            operation.offset, file.expected.size(), size)};
  }
  expect_bytes(file, operation.offset, found.first(size));
}

void ExercisedFiles::write(File& file, const Operation& operation) {
  const std::uint64_t size = clamp(operation.offset, operation.size, options_.file_size_max);
  if (size == 0) return;
  const std::span<std::byte> bytes = buffer(size);
  fill(operation, 0, bytes);
  set_expected(file, operation.offset, bytes);
  const Transfer whole{.writes = true,
                       .file = descriptor(file, operation.channel),
                       .bytes = bytes,
                       .offset = to_offset(operation.offset)};
  transfer(whole, file, operation, options_.write_boundary);
}

std::size_t ExercisedFiles::transfer(Transfer whole, const File& file, const Operation& operation,
                                     std::uint64_t boundary) {
  if (is_direct(operation.channel)) boundary = std::max(boundary, sector_size);
  const std::vector<Transfer> pieces = pieces_of(whole, operation.piece_count, boundary);
  const std::vector<ssize_t> results = calls_.transfer(operation.channel, pieces);
  std::size_t end = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Transfer& piece = pieces[i];
    const ssize_t done = finish(piece, results[i], to_offset(file.expected.size()));
    const off_t begin = whole.offset + static_cast<off_t>(end);
    if (done > 0 && begin != piece.offset) {
      throw Wrong{fmt::format("{} at {}: {} bytes, though those before it end at {}",
                              name_of(piece), piece.offset, done, begin)};
    }
    end += static_cast<std::size_t>(done);
  }
  if (whole.writes && end != whole.bytes.size()) {
    throw Wrong{fmt::format("write of {} bytes at {}: {} were written", whole.bytes.size(),
                            whole.offset, end)};
  }
  return end;
}

void ExercisedFiles::mapped_read(File& file, const Operation& operation) {
  const std::uint64_t size = clamp(operation.offset, operation.size, file.expected.size());
  if (size == 0) return;
  const Mapping mapping(file.plain, operation.offset, size, PROT_READ);
  expect_bytes(file, operation.offset, mapping.bytes());
  if (operation.offset + size < file.expected.size()) return;
  const auto rest = mapping.rest();
  const auto at =
      std::find_if(rest.begin(), rest.end(), [](auto byte) { return byte != std::byte{0}; });
  if (at != rest.end()) {
    throw Wrong{fmt::format("mapped, the last page has {} behind the end of the file at {}",
                            shown(rest.subspan(static_cast<std::size_t>(at - rest.begin()))),
                            file.expected.size())};
  }
}

void ExercisedFiles::mapped_write(File& file, const Operation& operation) {
  const std::uint64_t size = clamp(operation.offset, operation.size, options_.file_size_max);
  if (size == 0) return;
  if (operation.offset + size > file.expected.size()) truncate(file, operation.offset + size);
  const Mapping mapping(file.plain, operation.offset, size, PROT_READ | PROT_WRITE);
  fill(operation, 0, mapping.bytes());
  set_expected(file, operation.offset, mapping.bytes());
  if (operation.sync) mapping.write_out();
}

void ExercisedFiles::truncate(File& file, std::uint64_t size) {
  expect_done("ftruncate", ::ftruncate(file.plain, to_offset(size)));
  file.expected.resize(size);
}

void ExercisedFiles::allocate(File& file, const Operation& operation) {
  const std::uint64_t size = clamp(operation.offset, operation.size, options_.file_size_max);
  if (size == 0) return;
  const bool keeps_size = operation.keep_size || operation.kind == Kind::punch;
  int mode = keeps_size ? FALLOC_FL_KEEP_SIZE : 0;
  if (operation.kind == Kind::punch) mode |= FALLOC_FL_PUNCH_HOLE;
  if (operation.kind == Kind::zero) mode |= FALLOC_FL_ZERO_RANGE;
  expect_done("fallocate",
              ::fallocate(file.plain, mode, to_offset(operation.offset), to_offset(size)));
  const std::uint64_t end = operation.offset + size;
  if (!keeps_size && end > file.expected.size()) file.expected.resize(end);
  if (operation.kind == Kind::allocate) return;
  const std::uint64_t gone = clamp(operation.offset, size, file.expected.size());
  std::fill_n(file.expected.begin() + to_offset(operation.offset), gone, std::byte{0});
}

void ExercisedFiles::copy(File& from, File& to, const Operation& operation) {
  if (to.plain < 0) open(to);
  std::uint64_t size = clamp(operation.offset, operation.size, from.expected.size());
  size = clamp(operation.to_offset, size, options_.file_size_max);
  const bool overlap = &from == &to && operation.offset < operation.to_offset + size &&
                       operation.to_offset < operation.offset + size;
  if (size == 0 || overlap) return;  // the latter is an error, EINVAL
  off_t at = to_offset(operation.offset), to_at = to_offset(operation.to_offset);
  for (std::uint64_t left = size; left > 0;) {
    const ssize_t done = ::copy_file_range(from.plain, &at, to.plain, &to_at, left, 0);
    if (done < 0) fail_call("copy_file_range");
    if (done == 0) throw Wrong{fmt::format("copy_file_range: nothing left at {}", at)};
    left -= static_cast<std::uint64_t>(done);
  }
  const auto first = from.expected.begin() + to_offset(operation.offset);
  const std::vector<std::byte> copied(first, first + to_offset(size));
  set_expected(to, operation.to_offset, copied);
  expect_size(to);
}

void ExercisedFiles::check(File& file, const Operation& operation) {
  if (operation.sync) expect_done("fsync", ::fsync(file.plain));
  const Descriptor own(file.path, O_RDONLY | (is_direct(operation.channel) ? O_DIRECT : 0));
  if (const int error = ::posix_fadvise(own, 0, 0, POSIX_FADV_DONTNEED); error != 0) {
    fail_call("posix_fadvise", error);
  }
  if (options_.drops_caches) {
    std::ofstream drop("/proc/sys/vm/drop_caches");
    drop << 1;
    drop.close();
    if (!drop) fail_call("/proc/sys/vm/drop_caches");
  }
  // One page more than there should be.
  const std::uint64_t size = file.expected.size() / page_size * page_size + 2 * page_size;
  const std::span<std::byte> found = buffer(size);
  const Transfer whole{.writes = false, .file = own, .bytes = found, .offset = 0};
  const std::size_t came = transfer(whole, file, operation, page_size);
  if (came != file.expected.size()) {
    throw Wrong{fmt::format("the file has {} bytes to read, not {}", came, file.expected.size())};
  }
  expect_bytes(file, 0, found.first(came));
}

void ExercisedFiles::upkeep() {
  if (options_.upkeep.empty()) return;
  for (const auto& file : files_)
    close(*file);
  const int status = std::system(options_.upkeep.c_str());
  if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Wrong{fmt::format("{}: status {}", options_.upkeep, status)};
  }
}

void ExercisedFiles::set_expected(File& file, std::uint64_t offset,
                                  std::span<const std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  if (end > file.expected.size()) file.expected.resize(end);
  std::copy(bytes.begin(), bytes.end(), file.expected.begin() + to_offset(offset));
}

void ExercisedFiles::expect_size(const File& file) {
  struct stat found {};
  expect_done("fstat", ::fstat(file.plain, &found));
  if (static_cast<std::uint64_t>(found.st_size) != file.expected.size()) {
    throw Wrong{fmt::format("the size is {}, not {}", found.st_size, file.expected.size())};
  }
}

void ExercisedFiles::expect_bytes(const File& file, std::uint64_t offset,
                                  std::span<const std::byte> found) {
  const std::span expected = std::span(file.expected).subspan(offset, found.size());
  if (std::memcmp(expected.data(), found.data(), found.size()) == 0) return;
  const auto at = static_cast<std::size_t>(
      std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin());
  std::size_t wrong = 0, end = at;
  for (std::size_t i = at; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    ++wrong;
    end = i + 1;
  }
  throw Wrong{fmt::format("{} bytes from {} to {} are not what was written: {} instead of {}",
                          wrong, offset + at, offset + end, shown(found.subspan(at)),
                          shown(expected.subspan(at)))};
}

}  // namespace nacre::tests
