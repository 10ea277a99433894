// SPDX-License-Identifier: Apache-2.0
#include "metadata/backing/volume_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>

#include "gpu_engine/base/folder_owner.h"
#include "gpu_engine/base/printable.h"
#include "metadata/backing/posix_error.h"
#include "metadata/text/exact_bytes.h"
#include "metadata/text/rfc3339.h"

namespace nacre::metadata {

namespace {

constexpr char lock_name[] = "lock";
constexpr unsigned lock_file_mode = 0600;
constexpr std::size_t content_size_bytes_max = 16u << 10;
constexpr auto retry_interval = std::chrono::milliseconds(20);
// A killed process keeps its files open until the last of its threads has finished its disk access.
constexpr auto ending_wait = std::chrono::seconds(10);
// A process that ends releases file and folder one after the other.
constexpr std::uint32_t folder_wait_ms = 2000;

std::string host_name() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

struct Holder {
  std::int64_t pid = 0;
  std::string host, since;
  std::string mountpoint;  // as bytes, not escaped for printing
};

std::optional<Holder> read_holder(int file) {
  std::string text(content_size_bytes_max, '\0');
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto text_of = [&](const char* key) {
    const auto at = json.find(key);
    return at != json.end() && at->is_string() ? printable(at->get<std::string>()) : std::string();
  };
  Holder holder{.host = text_of("host"),
                .since = text_of("since"),
                .mountpoint = get_bytes(json, "mountpoint").value_or(std::string())};
  const auto pid = json.find("pid");
  if (pid == json.end() || !pid->is_number_unsigned() || holder.host.empty()) return std::nullopt;
  holder.pid = pid->get<std::int64_t>();
  return holder;
}

// Whether the content cannot be that of the lock's holder, as far as this host can tell.
bool is_dead(const Holder& holder) {
  return holder.host == host_name() && holder.pid > 0 &&
         kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == ESRCH;
}

// Whether the process is ending, or was killed, and still exists.
bool is_ending(const Holder& holder) {
  if (holder.host != host_name()) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", holder.pid));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = stat.rfind(") ");  // the process's name may contain any bytes
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  const char state = stat[name_end + 2];
  return state == 'Z' || state == 'X';
}

tl::unexpected<Error> fail_busy(int file, LockMode mode, const std::string& path) {
  // If only readers hold the lock, it can be shared for a moment. A writer's lock cannot.
  if (mode == LockMode::exclusive && flock(file, LOCK_SH | LOCK_NB) == 0) {
    flock(file, LOCK_UN);
    return fail(ErrorCode::busy,
                fmt::format("{}: the volume is already in use for reading (a read-only mount, or "
                            "a check of it); unmount it there first",
                            path));
  }
  const auto holder = read_holder(file);
  if (!holder) {
    return fail(ErrorCode::busy, fmt::format("{}: the volume is already in use, and the lock file "
                                             "does not say by whom",
                                             path));
  }
  if (is_dead(*holder)) {
    return fail(ErrorCode::busy,
                fmt::format("{}: the volume is already in use; the lock file names process {} on "
                            "host {}, which no longer runs",
                            path, holder->pid, holder->host));
  }
  const std::string where = holder->mountpoint.empty()
                                ? "in use"
                                : fmt::format("mounted at {}", printable(holder->mountpoint));
  return fail(ErrorCode::busy, fmt::format("{}: already {} by process {} on host {} since {}", path,
                                           where, holder->pid, holder->host, holder->since));
}

tl::unexpected<Error> fail_not_a_file(const std::string& path) {
  return fail(ErrorCode::corrupt,
              fmt::format("{}: not a regular file: move it away, and a new one is made", path));
}

// Opens the lock file, and makes it if there is none. Without a descriptor errno is set.
FileDescriptor open_lock(const std::string& volume_path) {
  const FileDescriptor folder(open(volume_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return {};
  FileDescriptor file = open_at(folder.get(), lock_name, O_RDWR);
  if (file || errno != ENOENT) return file;
  file = open_at(folder.get(), lock_name, O_RDWR | O_CREAT | O_EXCL, lock_file_mode);
  if (!file && errno == EEXIST) return open_at(folder.get(), lock_name, O_RDWR);
  if (!file) return file;
  if (const int error = give_to_folder_owner(folder.get(), file.get())) {
    unlinkat(folder.get(), lock_name, 0);
    file = {};
    errno = error;
  }
  return file;
}

tl::unexpected<Error> fail_replaced(const std::string& volume_path) {
  return fail(
      ErrorCode::busy,
      fmt::format("{}: the volume is in use, by a process that holds another file \"lock\" "
                  "than the one that is there now: somebody removed or replaced it. Find the "
                  "process (fuser -v {}/db/*), and unmount the volume there first",
                  volume_path, volume_path));
}

// Returns 0, or the errno of the last try: EWOULDBLOCK if another process still holds the lock.
int lock_within(int file, LockMode mode, std::uint32_t wait_ms) {
  const int operation = (mode == LockMode::exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
  const auto start = std::chrono::steady_clock::now();
  while (flock(file, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return errno;
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited >= std::chrono::milliseconds(wait_ms)) {
      const auto holder = read_holder(file);
      if (waited >= ending_wait || !holder || !is_ending(*holder)) return EWOULDBLOCK;
    }
    std::this_thread::sleep_for(retry_interval);
  }
  return 0;
}

// Locks the folder in addition to its file "lock", which is locked already. Without a descriptor
// the file system cannot lock folders.
Result<FileDescriptor> lock_folder(const std::string& volume_path, int file, LockMode mode) {
  FileDescriptor folder(open(volume_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return FileDescriptor();
  struct stat held = {};
  struct stat named = {};
  if (fstat(file, &held) != 0 ||
      fstatat(folder.get(), lock_name, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      held.st_ino != named.st_ino || held.st_dev != named.st_dev)
    return fail_replaced(volume_path);
  const int error = lock_within(folder.get(), mode, folder_wait_ms);
  if (error == EWOULDBLOCK) return fail_replaced(volume_path);
  if (error != 0) return FileDescriptor();
  return folder;
}

}  // namespace

bool is_writer(const std::string& volume_path, pid_t process) {
  const FileDescriptor file = open_at(AT_FDCWD, volume_path + "/lock", O_RDONLY);
  if (!file) return false;
  const auto holder = read_holder(file.get());
  if (!holder || holder->pid != process || holder->host != host_name()) return false;
  // The content of a dead writer may stay, and its process number may be used again. So the content
  // counts only if the lock is held.
  if (flock(file.get(), LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(file.get(), LOCK_UN);
  return false;
}

bool LockState::names(const std::string& path) const {
  return !path.empty() && path == mountpoint;
}

std::optional<LockState> read_lock(const std::string& volume_path) {
  const FileDescriptor file =
      open_at(AT_FDCWD, fmt::format("{}/{}", volume_path, lock_name), O_RDONLY);
  if (!file) return std::nullopt;
  LockState state;
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
    flock(file.get(), LOCK_UN);
  } else if (errno == EWOULDBLOCK) {
    state.is_held = true;
  } else {
    return std::nullopt;
  }
  // The content is read after that, because an ending writer removes its name before the lock.
  if (const auto holder = read_holder(file.get())) {
    if (holder->host != host_name()) return std::nullopt;
    state.pid = holder->pid;
    state.mountpoint = holder->mountpoint;
  }
  return state;
}

VolumeLock::VolumeLock(FileDescriptor file, FileDescriptor folder, std::string path, LockMode mode)
    : file_(std::move(file)), folder_(std::move(folder)), path_(std::move(path)), mode_(mode) {}
VolumeLock::VolumeLock(VolumeLock&&) noexcept = default;
VolumeLock::~VolumeLock() {
  release();
}

VolumeLock& VolumeLock::operator=(VolumeLock&& other) noexcept {
  release();
  file_ = std::move(other.file_);
  folder_ = std::move(other.folder_);
  path_ = std::move(other.path_);
  mode_ = other.mode_;
  leaves_name_ = other.leaves_name_;
  return *this;
}

void VolumeLock::release() {
  if (!file_) return;
  // The name is removed before the lock is released, so no process finds a lock with a wrong name.
  // A parent that exits leaves the name of its child.
  if (mode_ == LockMode::exclusive && !leaves_name_) {
    const auto holder = read_holder(file_.get());
    if (holder && holder->pid == getpid()) static_cast<void>(ftruncate(file_.get(), 0));
  }
  folder_ = {};
  file_ = {};
}

Result<VolumeLock> VolumeLock::acquire(const std::string& volume_path, const LockRequest& request) {
  const std::string path = volume_path + "/lock";
  FileDescriptor file = open_lock(volume_path);
  const int open_error = errno;
  const bool writable = static_cast<bool>(file);
  if (!writable && (open_error == ELOOP || open_error == EISDIR)) return fail_not_a_file(path);
  if (!writable && (open_error == ENOENT || open_error == ENOTDIR)) {
    return fail_errno(open_error, volume_path);
  }
  if (!writable && request.mode == LockMode::exclusive) return fail_errno(open_error, path);
  if (!writable) file = open_at(AT_FDCWD, path, O_RDONLY);
  if (!file) return VolumeLock({}, {}, path, request.mode);
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return fail_errno(errno, path);
  if (!S_ISREG(status.st_mode)) return fail_not_a_file(path);
  // The holder writes its name into the file, so the file must have no other name.
  if (status.st_nlink != 1 && request.mode == LockMode::exclusive) return fail_linked(path);

  const int lock_error = lock_within(file.get(), request.mode, request.wait_ms);
  if (lock_error == EWOULDBLOCK) return fail_busy(file.get(), request.mode, volume_path);
  if (lock_error != 0 && request.mode == LockMode::shared) {
    return VolumeLock({}, {}, path, request.mode);
  }
  if (lock_error != 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("{}: this file system cannot lock files ({}), so nothing would keep a "
                            "second mount away; keep the volume elsewhere, or mount it read-only",
                            path, std::generic_category().message(lock_error)));
  }
  NACRE_ASSIGN(FileDescriptor folder, lock_folder(volume_path, file.get(), request.mode));
  VolumeLock lock(std::move(file), std::move(folder), path, request.mode);
  NACRE_TRY(lock.announce(request.mountpoint));
  return lock;
}

Result<void> VolumeLock::announce(const std::string& mountpoint) {
  if (mode_ != LockMode::exclusive || !file_) return {};
  nlohmann::json content = {
      {"pid", getpid()}, {"host", host_name()}, {"since", rfc3339_now()}, {"mode", "rw"}};
  put_bytes(content, "mountpoint", mountpoint);
  const std::string line = to_json_line(content) + '\n';
  if (ftruncate(file_.get(), 0) != 0) return fail_errno(errno, path_);
  // The lock works without its content, so a full disk is no reason to refuse.
  const ssize_t written = pwrite(file_.get(), line.data(), line.size(), 0);
  if (written < 0 && code_of_errno(errno) != ErrorCode::no_space) return fail_errno(errno, path_);
  return {};
}

}  // namespace nacre::metadata
