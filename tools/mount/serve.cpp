// SPDX-License-Identifier: Apache-2.0
// Everything that draws random numbers or starts threads happens here, in the daemon, after the
// fork.
#include "tools/mount/serve.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/control/control_client.h"
#include "fs/control/control_server.h"
#include "fs/control/metrics_server.h"
#include "fs/control/mount_stats.h"
#include "fs/control/mount_table.h"
#include "fs/fuse/mount_point.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/backing/volume_lock.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/mount/end_watch.h"
#include "tools/mount/lockable_volume.h"
#include "tools/mount/logging.h"
#include "tools/mount/mount_control.h"
#include "tools/mount/sandbox.h"
#include "tools/mount/wiped_heap.h"

namespace nacre::tools {

namespace {

constexpr std::uint32_t predecessor_wait_ms = 30'000;

Result<metadata::VolumeLock> lock_volume(const MountPlan& plan, const VolumePlace& place) {
  metadata::LockRequest request{.mode = plan.volume_options.read_only
                                            ? metadata::LockMode::shared
                                            : metadata::LockMode::exclusive,
                                .mountpoint = plan.mountpoint};
  auto lock = metadata::VolumeLock::acquire(place.path, request);
  if (!lock && lock.error().code == ErrorCode::busy && !fs::find_mount_of_volume(place.path) &&
      !fs::find_mount_by_lock(place.path)) {
    print_note(fmt::format("{}: waiting up to {} s for the process that uses the volume",
                           place.path, predecessor_wait_ms / 1000));
    request.wait_ms = predecessor_wait_ms;
    lock = metadata::VolumeLock::acquire(place.path, request);
  }
  if (!lock &&
      (lock.error().code == ErrorCode::read_only || lock.error().code == ErrorCode::permission)) {
    return fail(lock.error().code,
                fmt::format("{}. A volume that cannot be written to can be mounted with -o ro",
                            lock.error().message));
  }
  return lock;
}

// Frees the mount point at once, unless something else is mounted there by now.
void detach(const std::string& mount_point, const std::string& device) {
  const auto table = fs::read_mount_table();
  if (!table) return;
  for (const fs::MountEntry& entry : *table) {
    if (entry.mountpoint == mount_point &&
        fmt::format("{}:{}", entry.device_major, entry.device_minor) == device) {
      static_cast<void>(
          fs::unmount(mount_point, fs::UnmountMode::detach, fs::MountEnvironment::current()));
    }
  }
}

// Raises the limit of open files to what the system allows, for segments and tables.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

fs::MountDescription describe(const MountPlan& plan, const VolumePlace& place,
                              const metadata::Superblock& superblock,
                              const fs::FuseSession& session) {
  fs::MountDescription description{.volume_directory = place.path,
                                   .mountpoint = session.mount_point(),
                                   .volume_id = hex(superblock.volume_id),
                                   .label = superblock.label,
                                   .chunk_size_bytes = superblock.chunk_size_bytes,
                                   .read_only = plan.volume_options.read_only};
  // "major:minor", as the mount table has it.
  std::sscanf(session.device().c_str(), "%u:%u", &description.device_major,
              &description.device_minor);
  return description;
}

bool uses_gpu(const engine::Engine& engine) {
  const std::string name = engine.backend_name();
  return name.find("cuda") != std::string::npos && name.find("cuda: none") == std::string::npos;
}

class Mount {
 public:
  Mount(const MountPlan& plan, Readiness& readiness)
      : plan_(plan),
        readiness_(readiness),
        log_options_{.target = plan.log_target,
                     .file = plan.log_file,
                     .volume = plan.volume,
                     .foreground = plan.foreground,
                     .verbose = plan.verbose} {}

  // Meanwhile a signal still ends the process as usual, while it waits or derives keys.
  Result<> lock_and_unlock(const metadata::VolumeSecret& secret) {
    NACRE_TRY(start_logging(log_options_));
    NACRE_ASSIGN(place_, open_place(plan_.volume));
    NACRE_ASSIGN(auto lock, lock_volume(plan_, place_));
    lock_.emplace(std::move(lock));
    NACRE_ASSIGN(keys_, unlock_quietly(place_, secret, plan_.secret));
    // They go to the log too, because perhaps nobody saw them on a terminal.
    for (const auto& warning : keys_.warnings)
      spdlog::warn("{}", warning.message);
    if (const auto text = legacy_cipher_warning(place_, keys_.superblock, keys_.keyring);
        !text.empty()) {
      spdlog::warn("{}", text);
    }
    if (plan_.expects_format_2) {
      if (const auto text = older_format_warning(place_, keys_.keyring); !text.empty()) {
        spdlog::warn("{}", text);
      }
    }
    if (!plan_.volume_options.read_only) NACRE_TRY(metadata::check_writable(keys_.superblock));
    return {};
  }

  Result<> open_volume() {
    volume_.emplace(plan_, place_, may_name_files(log_options_));
    superblock_ = keys_.superblock;
    metadata::VolumeKeys keys = std::move(keys_);
    keys_ = {};
    return volume_->open(std::move(keys));
  }

  Result<> serve(SignalWatch& signals) {
    if (const auto opened = open_metrics(); !opened) {
      static_cast<void>(close());
      return opened;
    }
    fs::FuseOptions fuse = plan_.fuse;
    fuse.watch = true;
    fs::ServedVolume served_volume = volume_->opened().served();
    served_volume.is_needed = [this] {
      const auto use = volume_->use();
      return use && (*use)->mounted().backups().count() > 0;
    };
    auto session = fs::FuseSession::create(served_volume, plan_.mountpoint, fuse);
    if (!session) {
      // Nothing was written, but the write session is known: leave the volume as clean as it was.
      static_cast<void>(close());
      return tl::unexpected(session.error());
    }
    session_ = std::move(*session);
    volume_->attach(*session_);
    MountControl control(*volume_, *session_, is_sandboxed_);
    const auto description = describe(plan_, place_, superblock_, *session_);
    auto server = fs::ControlServer::start(description, control);
    auto metrics = serve_metrics(control, description);
    if (!server) {
      spdlog::warn("no control socket ({}): nacre sync, umount and stats will not reach this mount",
                   server.error().message);
    }
    EndWatch end(place_.path, [where = session_->mount_point(), device = session_->device()] {
      detach(where, device);
      ::_exit(exit_operational);
    });
    Mutex session_use;  // a signal must not meet a session that goes
    signals.start([&](int signal) {
      UniqueLock use(session_use);
      if (!end.begin()) {
        use.unlock();
        return end.signal();
      }
      spdlog::info("signal {}: unmounting", signal);
      session_->request_exit();
    });
    volume_->opened().start_work();
    Result<> sandboxed;
    const auto served = session_->run([&] {
      sandboxed = give_up_calls();
      if (sandboxed) return announce();
      session_->request_exit();
    });
    {
      LockGuard use(session_use);
      end.begin();
    }
    metrics.reset();
    // begin_closing() waits for a trim that is under way.
    if (const auto use = volume_->use()) (*use)->stop_work();
    if (server) (*server)->begin_closing();
    session_.reset();
    const auto closed = close();
    if (!closed) {
      spdlog::error("{}: closing the volume failed: {}", place_.path, closed.error().message);
    } else {
      spdlog::info("{} is unmounted, everything is durable", place_.path);
    }
    if (server) (*server)->finish(closed);
    signals.stop();
    if (!served) return served;
    if (!sandboxed) return sandboxed;
    return closed;
  }

  bool is_usable() const { return usable_; }

 private:
  // Before the mount, so that an address that cannot be had is told to whoever mounts.
  Result<> open_metrics() {
    if (!plan_.metrics) return {};
    if (!fs::metrics_are_built_in()) {
      return fail(ErrorCode::unsupported,
                  "metrics=: this Nacre was built without libmicrohttpd and has no metrics");
    }
    NACRE_ASSIGN(auto listener, fs::MetricsListener::open(*plan_.metrics));
    metrics_listener_.emplace(std::move(listener));
    return {};
  }
  std::unique_ptr<fs::MetricsServer> serve_metrics(fs::ControlHandler& control,
                                                   const fs::MountDescription& description) {
    if (!metrics_listener_) return nullptr;
    const std::string where = metrics_listener_->description();
    auto server = fs::MetricsServer::start(std::move(*metrics_listener_), [&control, description] {
      const auto command = control.begin_command();
      return command ? fs::to_prometheus(fs::gather_stats(control), description)
                     : fs::locked_to_prometheus(description);
    });
    metrics_listener_.reset();
    if (!server) {
      spdlog::warn("no metrics: {}", server.error().message);
      return nullptr;
    }
    spdlog::info("metrics are at {}", where);
    return std::move(*server);
  }

  // Once all that the start needs has been done: the mount, the watcher, the engine, the sockets.
  // An ordinary user's daemon runs fusermount3, which is set-uid, to unmount, and the driver of a
  // GPU may run programs and make calls of its own.
  Result<> give_up_calls() {
#ifdef NACRE_SANITIZER
    const bool fits = false;
#else
    const bool fits = ::geteuid() == 0 && !uses_gpu(volume_->opened().mounted().engine());
#endif
    if (plan_.sandbox == SandboxMode::off) return {};
    if (plan_.sandbox == SandboxMode::automatic && !fits) return {};
    const auto entered = enter_sandbox({.runs_programs = !plan_.witness.command.empty()});
    is_sandboxed_ = entered.has_value();
    if (entered) return {};
    if (plan_.sandbox == SandboxMode::on) return add_context(entered.error(), "sandbox=on");
    spdlog::info("the daemon runs without a sandbox: {}", entered.error().message);
    return {};
  }

  void announce() {
    usable_ = true;
    spdlog::info("{} is mounted at {}{}", place_.path, session_->mount_point(),
                 plan_.volume_options.read_only ? ", read-only" : "");
    leave_standard_error(log_options_);
    if (!readiness_.announce()) {
      spdlog::warn("the command that mounted {} has ended: unmounting", place_.path);
      session_->request_exit();
    }
  }

  // This also gives up the lock: a process that waits for it finds the volume closed.
  Result<> close() {
    const auto closed = volume_->close();
    if (!closed) lock_->leave_name();
    lock_.reset();
    return closed;
  }

  const MountPlan& plan_;
  VolumePlace place_;
  Readiness& readiness_;
  const LogOptions log_options_;
  std::optional<metadata::VolumeLock> lock_;
  metadata::VolumeKeys keys_;  // until the volume is opened
  metadata::Superblock superblock_;
  std::optional<LockableVolume> volume_;
  std::unique_ptr<fs::FuseSession> session_;
  std::optional<fs::MetricsListener> metrics_listener_;
  bool usable_ = false;
  std::atomic<bool> is_sandboxed_{false};
};

// For damage, as opposed to a refusal: the command that helps next.
Error with_advice(Error error, const std::string& volume) {
  if (error.code == ErrorCode::corrupt || error.code == ErrorCode::missing ||
      error.code == ErrorCode::tampered) {
    error.message +=
        fmt::format(". To see what a repair would do: fsck.nacre --repair --dry-run {}", volume);
  }
  return error;
}

// Threads that serve requests allocate chunks, and flushers free them. By default malloc gives
// nearly every thread a heap, and each heap keeps the room of its own peak: writing a file of 1 GB
// took up to 600 MiB. With one heap it takes 362 MiB and half the page faults, and is no slower.
void share_heaps() {
  mallopt(M_ARENA_MAX, static_cast<int>(heap_count()));
}

}  // namespace

int serve_volume(const MountPlan& plan, metadata::VolumeSecret secret, Readiness& readiness) {
  raise_file_limit();
  share_heaps();
  ::umask(077);
  Mount mount(plan, readiness);
  std::optional<SignalWatch> signals;
  auto result = mount.lock_and_unlock(secret);
  secret = SecretBytes();
  if (result) {
    // Before the first thread: all of them inherit the mask.
    signals.emplace();
    result = mount.open_volume().map_error(
        [&](Error error) { return with_advice(std::move(error), plan.volume); });
  }
  readiness.leave_terminal();
  if (result) result = mount.serve(*signals);
  if (result) return exit_fine;
  if (!mount.is_usable()) return report(result.error());
  spdlog::error("{}: {}", plan.volume, result.error().message);
  return exit_code_of(result.error().code);
}

}  // namespace nacre::tools
