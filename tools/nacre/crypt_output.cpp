// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/crypt_output.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/backing/posix_error.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

constexpr std::size_t single_count_max = 8;
constexpr std::size_t pending_count_max = 4096;
constexpr std::uint64_t writeback_size_bytes = 32u << 20;
// Between these two sizes, room for as much again as the file has is reserved. A file system hands
// out pages and blocks faster by the thousand than one by one, and keeps the blocks together.
constexpr std::uint64_t reserve_size_bytes_min = 1u << 20;
constexpr std::uint64_t reserve_size_bytes_max = 128u << 20;
constexpr mode_t mode_of_any_file = 0666;

// Held while such a file is made, published or removed, so that the clean-up of a signal sees all.
struct UnfinishedFiles {
  Mutex mutex;
  std::set<std::string> paths NACRE_GUARDED_BY(mutex);
};
UnfinishedFiles& unfinished_files() {
  static UnfinishedFiles files;
  return files;
}

mode_t umask_of_process() {
  // The umask can only be read by setting it, and the whole process has one.
  static const mode_t mask = [] {
    const mode_t found = ::umask(0077);
    ::umask(found);
    return found;
  }();
  return mask;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

tl::unexpected<Error> failure(const std::string& where) {
  return metadata::fail_errno(errno, where);
}

// rename(2) that replaces nothing, even if the file system does not know RENAME_NOREPLACE.
int rename_to_free_name(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (::link(from, to) != 0) return -1;
  return ::unlink(from);
}

}  // namespace

mode_t within_umask(mode_t mode) {
  return mode & ~umask_of_process();
}

SignalCleanup::SignalCleanup() {
  sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, number);
  }
  // This signal ends the wait below. No other part of the program sends it.
  sigaddset(&signals_, SIGUSR2);
  ::signal(SIGXFSZ, SIG_IGN);  // a write past a limit fails instead
  umask_of_process();          // while there is only one thread
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  // The mutex is locked for ever, which the analysis takes for a mistake.
  thread_ = std::thread([this]() NACRE_NO_THREAD_SAFETY_ANALYSIS {
    int number = 0;
    while (::sigwait(&signals_, &number) != 0) {
    }
    if (number == SIGUSR2) return;
    UnfinishedFiles& files = unfinished_files();
    files.mutex.lock();  // for ever, so that no thread makes another file
    for (const std::string& path : files.paths)
      ::unlink(path.c_str());
    ::signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    ::raise(number);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  });
}

SignalCleanup::~SignalCleanup() {
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<OutputFile> OutputFile::create(const std::string& path, bool make_folder,
                                      Durability durability) {
  OutputFile made;
  made.durability_ = durability;
  made.path_ = path;
  const std::string folder = folder_of(path);
  if (make_folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return metadata::fail_errno(error.value(), folder);
  }
  std::array<Byte, 8> random;
  engine::random_bytes(random);
  const std::string name = fmt::format("{}/.nacre-crypt-{}", folder, hex(random));
  UnfinishedFiles& files = unfinished_files();
  const LockGuard lock(files.mutex);
  made.file_ = metadata::open_at(AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!made.file_) return failure(folder);
  files.paths.insert(name);
  made.unfinished_ = name;
  return made;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      unfinished_(std::exchange(other.unfinished_, {})),
      file_(std::move(other.file_)),
      durability_(other.durability_),
      written_bytes_(other.written_bytes_),
      started_bytes_(other.started_bytes_),
      reserved_bytes_(other.reserved_bytes_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  OutputFile taken(std::move(other));
  std::swap(path_, taken.path_);
  std::swap(unfinished_, taken.unfinished_);
  std::swap(file_, taken.file_);
  std::swap(durability_, taken.durability_);
  std::swap(written_bytes_, taken.written_bytes_);
  std::swap(started_bytes_, taken.started_bytes_);
  std::swap(reserved_bytes_, taken.reserved_bytes_);
  return *this;
}

Result<> OutputFile::write(std::span<const ByteView> pieces) {
  std::uint64_t size_bytes = 0;
  for (const ByteView piece : pieces)
    size_bytes += piece.size();
  reserve(size_bytes);
  NACRE_TRY(write_all(file_.get(), pieces, path_));
  written_bytes_ += size_bytes;
  // Little is then left to write when the file is synced.
  if (written_bytes_ - started_bytes_ >= writeback_size_bytes) start_writeback();
  return {};
}

// Errors do not count: the write reports a lack of room, and some file systems cannot reserve any.
void OutputFile::reserve(std::uint64_t size_bytes) {
  if (written_bytes_ + size_bytes <= reserved_bytes_) return;
  if (written_bytes_ < reserve_size_bytes_min) return;
  const auto more = std::max(size_bytes, std::min(written_bytes_, reserve_size_bytes_max));
  // If it fails, it is tried again only at the end of that room.
  reserved_bytes_ = written_bytes_ + more;
  ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(written_bytes_),
              static_cast<off_t>(more));
}

Result<> OutputFile::set_attributes(std::optional<mode_t> mode,
                                    const std::optional<timespec>& modified) {
  // Gives back the room that was not needed. This comes before the times, because it changes them.
  if (reserved_bytes_ > written_bytes_ &&
      ::ftruncate(file_.get(), static_cast<off_t>(written_bytes_)) != 0) {
    return failure(path_);
  }
  if (::fchmod(file_.get(), mode.value_or(within_umask(mode_of_any_file))) != 0)
    return failure(path_);
  if (!modified) return {};
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, *modified};
  if (::futimens(file_.get(), times) != 0) return failure(path_);
  return {};
}

void OutputFile::start_writeback() {
  if (durability_ == Durability::left_to_system) return;
  ::sync_file_range(file_.get(), static_cast<off64_t>(started_bytes_),
                    static_cast<off64_t>(written_bytes_ - started_bytes_), SYNC_FILE_RANGE_WRITE);
  started_bytes_ = written_bytes_;
}

dev_t OutputFile::device() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 ? status.st_dev : 0;
}

metadata::FileDescriptor OutputFile::take_descriptor() {
  return std::move(file_);
}

Result<> OutputFile::sync() {
  // Some files that can be written cannot be synced.
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOSYS) return failure(path_);
  return {};
}

Result<> OutputFile::publish(bool replace) {
  UnfinishedFiles& files = unfinished_files();
  const LockGuard lock(files.mutex);
  const int renamed = replace ? ::rename(unfinished_.c_str(), path_.c_str())
                              : rename_to_free_name(unfinished_.c_str(), path_.c_str());
  if (renamed != 0) return failure(path_);
  files.paths.erase(unfinished_);
  unfinished_.clear();
  return {};
}

void OutputFile::discard() {
  if (unfinished_.empty()) return;
  UnfinishedFiles& files = unfinished_files();
  const LockGuard lock(files.mutex);
  ::unlink(unfinished_.c_str());
  files.paths.erase(unfinished_);
  unfinished_.clear();
}

void OutputQueue::add(OutputFile file, Done done) {
  if (durability_ == Durability::left_to_system) {
    done(file.publish(replace_));
    return;
  }
  file.start_writeback();
  if (entries_.size() >= single_count_max) {
    // There are too many to keep them open; the first one of each file system stays open.
    const dev_t device = file.device();
    metadata::FileDescriptor descriptor = file.take_descriptor();
    devices_.try_emplace(device, std::move(descriptor));
  }
  entries_.push_back({.file = std::move(file), .done = std::move(done), .outcome = {}});
  if (entries_.size() >= pending_count_max) flush();
}

void OutputQueue::sync_files() {
  for (std::size_t i = 0; i < std::min(entries_.size(), single_count_max); ++i)
    entries_[i].outcome = entries_[i].file.sync();
  const Result<> together = sync_devices();
  for (std::size_t i = single_count_max; i < entries_.size(); ++i)
    entries_[i].outcome = together;
}

Result<> OutputQueue::sync_devices() {
  for (const auto& [device, descriptor] : devices_) {
    if (::syncfs(descriptor.get()) != 0) {
      return metadata::fail_errno(errno, "syncing the file system");
    }
  }
  return {};
}

// Makes the new names durable: in the first folders one by one, in all others by a sync of their
// file systems, which are known for all files except the first few.
void OutputQueue::sync_folders() {
  std::map<std::string, Result<>> folders;
  std::optional<Result<>> together;
  for (Entry& entry : entries_) {
    if (!entry.outcome) continue;
    const auto [at, is_new] = folders.try_emplace(folder_of(entry.file.path()));
    if (is_new && folders.size() <= single_count_max) {
      at->second = sync_folder_of(at->first + "/.");
    } else if (is_new) {
      if (!together) together = sync_devices();
      at->second = *together;
    }
    entry.outcome = at->second;
  }
}

void OutputQueue::flush() {
  sync_files();
  for (Entry& entry : entries_) {
    if (entry.outcome) entry.outcome = entry.file.publish(replace_);
  }
  sync_folders();
  for (Entry& entry : entries_)
    entry.done(std::move(entry.outcome));
  entries_.clear();
  devices_.clear();
}

Result<> write_all(int descriptor, std::span<const ByteView> pieces, const std::string& where) {
  std::array<iovec, 64> vectors;
  std::size_t first = 0, offset = 0;  // the piece and the place in it that come next
  while (first < pieces.size()) {
    std::size_t count = 0;
    for (; count < vectors.size() && first + count < pieces.size(); ++count) {
      const ByteView piece = pieces[first + count].subspan(count == 0 ? offset : 0);
      vectors[count] = {.iov_base = const_cast<Byte*>(piece.data()), .iov_len = piece.size()};
    }
    const ssize_t written = ::writev(descriptor, vectors.data(), static_cast<int>(count));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure(where);
    for (std::size_t left = static_cast<std::size_t>(written); first < pieces.size();) {
      const std::size_t rest = pieces[first].size() - offset;
      if (left < rest) {
        offset += left;
        break;
      }
      left -= rest;
      offset = 0;
      ++first;
    }
  }
  return {};
}

Result<> sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  // This also works through a link.
  const metadata::FileDescriptor descriptor =
      metadata::open_at(AT_FDCWD, folder + "/.", O_RDONLY | O_DIRECTORY);
  if (!descriptor) return failure(folder);
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL && errno != ENOSYS) return failure(folder);
  return {};
}

}  // namespace nacre::tools
