// SPDX-License-Identifier: Apache-2.0
// Mounting, and the life and the end of a session.
#include "fs/fuse/fuse_session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/control/mount_table.h"
#include "fs/fuse/device_transport.h"
#include "fs/fuse/errno.h"
#include "fs/fuse/uring_transport.h"

namespace nacre::fs {

namespace {

using Clock = std::chrono::steady_clock;
static_assert(std::atomic<bool>::is_always_lock_free, "request_exit() is for signal handlers");

constexpr std::string_view subtype = "nacre";
constexpr int retry_interval_ms = 100;
constexpr int dirty_share_percent = 10;

// Collects libfuse's messages while a mount is being made, instead of lines on standard error.
thread_local std::string* captured_log = nullptr;

void log_for_libfuse(fuse_log_level level, const char* format, va_list arguments) {
  char text[512];
  const int size = std::vsnprintf(text, sizeof text, format, arguments);
  if (size <= 0) return;
  std::string_view line(text,
                        std::min<std::size_t>(static_cast<std::size_t>(size), sizeof text - 1));
  while (line.ends_with('\n'))
    line.remove_suffix(1);
  if (captured_log != nullptr) {
    if (!captured_log->empty()) *captured_log += "; ";
    *captured_log += line;
  } else if (level <= FUSE_LOG_WARNING) {
    spdlog::warn("{}", line);
  }
}

class LogCapture {
 public:
  LogCapture() {
    fuse_set_log_func(log_for_libfuse);
    captured_log = &text_;
  }
  ~LogCapture() { captured_log = nullptr; }
  std::string text_or(std::string_view otherwise) const {
    return text_.empty() ? std::string(otherwise) : text_;
  }

 private:
  std::string text_;
};

// Commas and backslashes separate options for libfuse, so they are escaped.
std::string escaped(std::string_view option) {
  std::string result;
  for (const char c : option) {
    if (c == ',' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

bool has_option(const FuseOptions& options, std::string_view name) {
  return std::find(options.mount_options.begin(), options.mount_options.end(), name) !=
         options.mount_options.end();
}

std::vector<std::string> libfuse_options(const FuseOptions& options, uid_t user) {
  // The kernel decides by permission bits and ACLs. The daemon does not check them.
  std::vector<std::string> result = {"default_permissions", fmt::format("subtype={}", subtype),
                                     "fsname=" + escaped(options.fsname)};
  if (options.allow_other) result.emplace_back("allow_other");
  if (options.read_only) result.emplace_back("ro");
  // By default libfuse forbids both. Mounts of root are like those of any file system.
  if (user == 0 && !has_option(options, "nosuid")) result.emplace_back("suid");
  if (user == 0 && !has_option(options, "nodev")) result.emplace_back("dev");
  for (const std::string& option : options.mount_options)
    result.push_back(escaped(option));
  return result;
}

std::uint64_t total(const OpcodeCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

FuseSession::FuseSession(const ServedVolume& served, const FuseOptions& options)
    : options_(options),
      is_needed_(served.is_needed),
      served_(served),
      context_{.volume = &served.volume,
               .pacer = &served.pacer,
               .no_xattr = options.no_xattr,
               .no_handles = options.no_handles,
               .sync_names = options.sync_names,
               .owners = options.owners,
               .block_size_bytes = served.block_size_bytes} {}

Result<std::unique_ptr<FuseSession>> FuseSession::create(const ServedVolume& served,
                                                         const std::string& mount_point,
                                                         const FuseOptions& options) {
  std::unique_ptr<FuseSession> session(new FuseSession(served, options));
  session->event_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (session->event_fd_ < 0) return fail(ErrorCode::io, "cannot make an eventfd");
  NACRE_TRY(session->mount(mount_point));
  return session;
}

Result<> FuseSession::mount(const std::string& mount_point) {
  NACRE_TRY(check_fuse(options_.allow_other, environment_));
  if (options_.uring == UringMode::on) {
    NACRE_TRY(enable_uring());
    NACRE_TRY(plan_uring(UringMachine::current(), options_.uring));
  }
  NACRE_ASSIGN(mount_point_, check_mount_point(mount_point, options_.nonempty, environment_));

  const LogCapture log;
  fuse_args arguments = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&arguments, "nacre");
  for (const std::string& option : libfuse_options(options_, environment_.user)) {
    fuse_opt_add_arg(&arguments, "-o");
    fuse_opt_add_arg(&arguments, option.c_str());
  }
  const fuse_lowlevel_ops operations = make_operations();
  session_ = fuse_session_new(&arguments, &operations, sizeof operations, &context_);
  fuse_opt_free_args(&arguments);
  if (session_ == nullptr) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("libfuse does not take the mount options: {}", log.text_or("no reason given")));
  }
  if (fuse_session_mount(session_, mount_point_.c_str()) != 0) {
    return fail(ErrorCode::io, fmt::format("cannot mount on {}: {}", mount_point_,
                                           log.text_or("fusermount3 refused, see its message")));
  }
  kernel_ = std::make_unique<KernelNotifier>(session_, context_.gate);
  looker_ = std::make_unique<KernelNotifier>(session_, context_.gate);
  const unsigned thread_count =
      options_.thread_count == 0 ? default_thread_count() : options_.thread_count;
  make_transport(thread_count);
  measured_transport_ = std::make_unique<MeasuredTransport>(*transport_, metrics_);
  dispatcher_ = std::make_unique<Dispatcher>(context_, session_, *measured_transport_, metrics_,
                                             thread_count, [this] {
                                               initialised_ = true;
                                               signal_event();
                                             });
  context_.transport = measured_transport_.get();
  context_.kernel = kernel_.get();
  context_.looker = looker_.get();
  context_.dispatcher = dispatcher_.get();
  NACRE_TRY(dispatcher_->connect());
  NACRE_TRY(find_device());
  start_watcher();
  return {};
}

// A mount works without a watcher, too. If the daemon dies, its end is then left to the kernel.
void FuseSession::start_watcher() {
  auto known = KnownInodes::create();
  if (!known) {
    spdlog::warn("{}", known.error().message);
    return;
  }
  known_ = std::move(*known);
  context_.known = known_.get();
  if (!options_.watch) return;
  auto watcher = ConnectionWatcher::start(connection(), *known_);
  if (!watcher) {
    spdlog::warn("{}: if this process dies, programs may go on writing to the kernel's cache",
                 watcher.error().message);
    return;
  }
  watcher_ = std::move(*watcher);
}

void FuseSession::make_transport(unsigned thread_count) {
  const auto ended = [this] {
    fuse_session_exit(session_);
    ended_ = true;
    signal_event();
  };
  const int fd = fuse_session_fd(session_);
  const UringMachine machine = UringMachine::current();
  Result<UringPlan> plan = plan_uring(machine, options_.uring);
  if (plan) {
    may_have_rings_ = true;  // INIT decides it only later
    auto system = options_.uring_system ? options_.uring_system : std::make_shared<UringSystem>();
    transport_ =
        std::make_unique<UringTransport>(fd, thread_count, ended, std::move(*plan),
                                         options_.uring == UringMode::on, std::move(system));
    return;
  }
  // If the user did not ask for io_uring, there is nothing to report.
  const bool expected = machine.enabled.value_or(false) && options_.uring != UringMode::off;
  spdlog::log(expected ? spdlog::level::info : spdlog::level::debug,
              "/dev/fuse serves, not io_uring: {}", plan.error().message);
  transport_ = std::make_unique<DeviceTransport>(fd, thread_count, ended);
}

Connection FuseSession::connection() const {
  return {.fuse_descriptor = fuse_session_fd(session_),
          .device_minor = device_.substr(device_.find(':') + 1),
          .mount_point = mount_point_,
          .over_rings = may_have_rings_};
}

FuseSession::~FuseSession() {
  watcher_.reset();
  if (session_ != nullptr) {
    // An aborted connection leaves its mount behind, which libfuse does not check.
    if (ended_ && is_mounted()) {
      (void)unmount(mount_point_, UnmountMode::detach, environment_);
    }
    fuse_session_unmount(session_);
    fuse_session_destroy(session_);
  }
  if (event_fd_ >= 0) close(event_fd_);
}

Result<> FuseSession::run(const std::function<void()>& ready) {
  NACRE_TRY(kernel_->start());
  NACRE_TRY(looker_->start());
  {
    const LockGuard lock(served_mutex_);
    served_->kernel_cache.set(kernel_.get());
  }
  Result<> started = transport_->start(*dispatcher_);
  if (started) {
    bool announced = false;
    bool left = false;
    while (!ended_) {
      if (initialised_ && !announced) {
        announced = true;
        raise_read_ahead();
        set_dirty_share();
        usable_ = true;
        if (ready) ready();
      }
      if (exit_requested_) {
        leave();
        left = true;
        break;
      }
      wait_for_event(announced ? idle_wait_ms() : -1);
      if (announced) leave_when_idle();
    }
    transport_->join();
    // Another process may have aborted the connection of a mount that is in use, as umount -f does.
    if (!left && known_ && abort_connection(connection())) {
      make_kernel_forget(fuse_session_fd(session_), *known_, Forget::everything);
    }
  }
  usable_ = false;
  stop_pacing();
  looker_->stop();
  kernel_->stop();
  context_.pending.wait_for_none();
  const LockGuard lock(served_mutex_);
  if (served_) served_->kernel_cache.set(nullptr);
  return started;
}

RequestStats FuseSession::request_stats() const {
  return metrics_.stats([](std::uint32_t opcode) {
    std::string name(opcode_name(opcode));
    for (char& letter : name) {
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return name;
  });
}

bool FuseSession::has_all_writes() const {
  std::ifstream file("/sys/fs/fuse/connections/" + device_.substr(device_.find(':') + 1) +
                     "/waiting");
  std::uint64_t waiting_count = 0;
  if (file >> waiting_count && waiting_count == 0) return true;
  // Other requests may wait for long, for a lock or a flush.
  const std::uint64_t answered = metrics_.answered_count(FUSE_WRITE);
  return answered == opcode_counts()[FUSE_WRITE];
}

Result<> FuseSession::take_refusal() {
  const std::uint32_t refusal = context_.untold_refusal.exchange(Context::none_untold);
  if (refusal == Context::none_untold) return {};
  const auto code = static_cast<ErrorCode>(refusal);
  return fail(code, fmt::format("{}: the volume refused bytes that the kernel had taken: {}",
                                mount_point_, std::strerror(to_errno(code))));
}

void FuseSession::request_exit() noexcept {
  exit_requested_ = true;
  signal_event();
}

void FuseSession::signal_event() noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  // The counter cannot be full, and an event that is already there is enough.
  [[maybe_unused]] const ssize_t written = ::write(event_fd_, &one, sizeof one);
  errno = saved;
}

void FuseSession::wait_for_event(int timeout_ms) {
  pollfd waiting = {.fd = event_fd_, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, timeout_ms) <= 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_fd_, &count, sizeof count);
}

Result<> FuseSession::find_device() {
  NACRE_ASSIGN(const std::vector<MountEntry> table, read_mount_table());
  for (const MountEntry& entry : table) {
    if (entry.mountpoint == mount_point_ && entry.type == nacre_mount_type) {
      // The last one is on top.
      device_ = fmt::format("{}:{}", entry.device_major, entry.device_minor);
    }
  }
  if (device_.empty()) {
    return fail(ErrorCode::io,
                fmt::format("{} was mounted but is not in the mount table", mount_point_));
  }
  return {};
}

bool FuseSession::is_mounted() const {
  const Result<std::vector<MountEntry>> table = read_mount_table();
  if (!table) return false;
  return std::any_of(table->begin(), table->end(), [this](const MountEntry& entry) {
    return entry.mountpoint == mount_point_ &&
           fmt::format("{}:{}", entry.device_major, entry.device_minor) == device_;
  });
}

void FuseSession::raise_read_ahead() const {
  // Only root may do this. Otherwise sequential reads come in pieces of 128 KiB.
  std::ofstream file(fmt::format("/sys/class/bdi/{}/read_ahead_kb", device_));
  file << options_.read_ahead_kib;
}

void FuseSession::set_dirty_share() {
  // Only root may do this. By default such a mount gets a hundredth of the memory in which pages
  // wait to be written. The kernel then stops several writers long before they keep this process
  // busy.
  const std::string folder = fmt::format("/sys/class/bdi/{}/", device_);
  std::ofstream(folder + "max_ratio") << dirty_share_percent;
  // The kernel shall hold no more pages than a small volume has room for.
  std::uint64_t held_bytes = 0;
  if (!(std::ifstream(folder + "max_bytes") >> held_bytes)) return;
  const auto pass = context_.gate.enter(RequestGate::Origin::program);
  if (!pass) return;
  const Result<VolumeSpace> space = context_.volume->space();
  const std::uint64_t wanted_bytes =
      space ? WriteGate::dirty_bytes_wanted(space->total_bytes) : held_bytes;
  if (wanted_bytes < held_bytes) {
    std::ofstream(folder + "max_bytes") << wanted_bytes;
    std::ifstream(folder + "max_bytes") >> held_bytes;
  }
  context_.write_gate.set_dirty_bytes_max(held_bytes);
}

int FuseSession::idle_wait_ms() const {
  constexpr std::uint32_t wait_min = 50;
  constexpr std::uint32_t wait_max = 10'000;
  if (options_.idle_ms == 0) return -1;
  return static_cast<int>(std::clamp(options_.idle_ms / 8, wait_min, wait_max));
}

// The kernel does not tell which files are open, but it refuses to unmount while one is.
void FuseSession::leave_when_idle() {
  if (options_.idle_ms == 0 || ended_ || exit_requested_) return;
  const std::uint64_t count = total(opcode_counts());
  const auto now = Clock::now();
  if (count != busy_count_ || busy_until_ == Clock::time_point{} || (is_needed_ && is_needed_())) {
    busy_count_ = count;
    busy_until_ = now;
    return;
  }
  if (now - busy_until_ < std::chrono::milliseconds(options_.idle_ms)) return;
  if (is_mounted() && unmount(mount_point_, UnmountMode::when_free, environment_)) {
    spdlog::info("{} was unused for {} s: unmounted", mount_point_, options_.idle_ms / 1000);
    return;
  }
  busy_until_ = now;
}

void FuseSession::leave() {
  stop_pacing();
  write_back();
  const auto deadline = Clock::now() + std::chrono::milliseconds(options_.exit_grace_ms);
  while (!ended_ && Clock::now() < deadline) {
    if (is_mounted()) (void)unmount(mount_point_, UnmountMode::when_free, environment_);
    wait_for_event(retry_interval_ms);
  }
  if (ended_) return;
  spdlog::warn("{} is still in use: taking it away from its users", mount_point_);
  write_back();
  wait_until_quiet();
  watcher_.reset();
  dispatcher_->refuse_all();
  const bool is_aborted = abort_connection(connection());
  if (known_) {
    // Otherwise a disk that does not answer would keep this thread, and the mount, for ever.
    const bool all = is_aborted || has_all_writes();
    make_kernel_forget(fuse_session_fd(session_), *known_,
                       all ? Forget::everything : Forget::attributes);
  }
  if (is_mounted()) (void)unmount(mount_point_, UnmountMode::detach, environment_);
  disconnect();
}

void FuseSession::stop_pacing() {
  const LockGuard lock(served_mutex_);
  if (served_) served_->pacer.stop();
}

void FuseSession::write_back() const {
  // Sends requests to this process's own threads, which still serve. The kernel starts writing but
  // does not wait.
  const int fd = open(mount_point_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  syncfs(fd);
  close(fd);
}

void FuseSession::wait_until_quiet() {
  constexpr int rounds_max = 50;
  std::uint64_t before = total(opcode_counts());
  for (int round = 0; round < rounds_max && !ended_; ++round) {
    wait_for_event(retry_interval_ms);
    const std::uint64_t now = total(opcode_counts());
    if (now == before && has_all_writes()) return;
    before = now;
  }
}

void FuseSession::disconnect() {
  transport_->stop();
  // The end of a broken pipe takes the descriptor's place. So the last reference to the connection
  // goes, callers that wait for an answer get ENOTCONN, and POLLERR shows libfuse that it must not
  // unmount what may be mounted here by now.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  close(ends[0]);
  dup3(ends[1], fuse_session_fd(session_), O_CLOEXEC);
  close(ends[1]);
}

}  // namespace nacre::fs
