// SPDX-License-Identifier: Apache-2.0
// Everything that draws random numbers or starts threads happens here, in the daemon, after the
// fork.
#include "tools/mount/serve.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/control/control_client.h"
#include "fs/control/control_server.h"
#include "fs/control/metrics_server.h"
#include "fs/control/mount_stats.h"
#include "fs/control/mount_table.h"
#include "fs/fuse/mount_point.h"
#include "fs/rotation/rotation.h"
#include "fs/scrub/scrubber.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/keys/keyring_keeper.h"
#include "metadata/keys/keyring_recipients.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/volume_age_check.h"
#include "tools/mount/age_keeper.h"
#include "tools/mount/end_watch.h"
#include "tools/mount/logging.h"
#include "tools/mount/mount_control.h"
#include "tools/mount/sandbox.h"

namespace nacre::tools {

namespace {

constexpr std::uint32_t predecessor_wait_ms = 30'000;
// How often a witness elsewhere is told at most. It may be on a slow disk or a server.
constexpr std::chrono::milliseconds outside_interval{60'000};

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
    fs::VolumeOptions options = plan_.volume_options;
    options.may_name_files = may_name_files(log_options_);
    options.store.chunk_size_bytes = keys_.superblock.chunk_size_bytes;
    options.store.codec = keys_.superblock.codec;
    options.store.level = keys_.superblock.level;
    options.store.padding = keys_.superblock.padding;
    options.superblock_generation = metadata::generation_to_note(keys_.superblock);
    NACRE_ASSIGN(auto engine,
                 engine::Engine::create(engine_options(
                     plan_.engine, [](std::string_view text) { spdlog::warn("{}", text); })));
    NACRE_ASSIGN(outside_, open_outside_witness(plan_.witness, keys_, [](std::string_view text) {
                   spdlog::warn("{}", text);
                 }));
    OutsideWitness* const outside = outside_ ? &*outside_ : nullptr;
    if (!options.read_only) NACRE_TRY(check_age_beforehand(place_, keys_, plan_.secret, outside));
    options.accept = [this, outside](const metadata::Database& database) {
      return check_age(place_, keys_, database, plan_.secret, outside);
    };
    auto mounted = fs::Mounted::open(place_.directory, keys_.keys, keys_.keyring.generation,
                                     std::move(engine), options);
    if (!mounted) return add_context(mounted.error(), place_.path);
    mounted_ = std::move(*mounted);
    keyring_.emplace(place_.directory, keys_.keys, keys_.keyring, [this](std::uint64_t generation) {
      return mounted_->note_keyring_generation(generation);
    });
    if (!plan_.volume_options.read_only) {
      settle_next_key(place_, *keys_.keys);
      mend_keyring();
      note_age(mounted_->age(), Witness::Moment::opened);
      const std::chrono::milliseconds interval(options.commit_interval_ms);
      age_keeper_.emplace(
          interval, mounted_->age(), [this] { return mounted_->age(); },
          [this](const metadata::VolumeAge& age) {
            note_age(age, Witness::Moment::in_use);
            return true;
          });
      if (outside_) {
        // It knows nothing of this opening yet. On a thread of its own, since it may be slow.
        outside_keeper_.emplace(
            std::max(interval, outside_interval), metadata::VolumeAge(),
            [this] { return mounted_->age(); },
            [this](const metadata::VolumeAge& age) {
              return note_age_outside(age, Witness::Moment::in_use);
            });
      }
    }
    keys_.access.reset();  // the raw volume key is of no more use
    rotation_ = std::make_unique<fs::Rotation>(place_.directory, keys_.keys, *keyring_, *mounted_);
    rotation_->before_new_key(
        [this](const metadata::KeyTree& next) { remember_next_key(place_, *keys_.keys, next); });
    rotation_->on_new_key([this] { remember_new_volume(place_, *keys_.keys); });
    tell_of_foreign_root();
    return {};
  }

  Result<> serve(SignalWatch& signals) {
    if (const auto opened = open_metrics(); !opened) {
      static_cast<void>(close());
      return opened;
    }
    fs::FuseOptions fuse = plan_.fuse;
    fuse.watch = true;
    const fs::ServedVolume volume{.volume = mounted_->volume(),
                                  .kernel_cache = mounted_->kernel_cache(),
                                  .pacer = mounted_->compactor().pacer(),
                                  .block_size_bytes = keys_.superblock.chunk_size_bytes,
                                  .is_needed = [this] { return mounted_->backups().count() > 0; }};
    auto session = fs::FuseSession::create(volume, plan_.mountpoint, fuse);
    if (!session) {
      // Nothing was written, but the write session is known: leave the volume as clean as it was.
      static_cast<void>(close());
      return tl::unexpected(session.error());
    }
    session_ = std::move(*session);
    fs::Scrubber scrubber(*mounted_, keys_.superblock.volume_id,
                          {.may_name_files = may_name_files(log_options_)});
    scrubber.start();
    MountControl control(*mounted_, *keyring_, scrubber, *rotation_, *session_, is_sandboxed_);
    const auto description = describe(plan_, place_, keys_.superblock, *session_);
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
    rotation_->start();  // goes on with what an earlier mount left
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
    scrubber.close();
    rotation_->stop();
    mounted_->compactor().stop();  // begin_closing() waits for a trim that is under way
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
      return fs::to_prometheus(fs::gather_stats(control), description);
    });
    metrics_listener_.reset();
    if (!server) {
      spdlog::warn("no metrics: {}", server.error().message);
      return nullptr;
    }
    spdlog::info("metrics are at {}", where);
    return std::move(*server);
  }

  // In a volume that root made, for example, an ordinary user can write nothing. What helps is not
  // obvious, so the message says it.
  void tell_of_foreign_root() {
    if (::geteuid() == 0 || plan_.volume_options.read_only || plan_.fuse.owners.uid) return;
    const auto root = mounted_->volume().attributes(metadata::root_inode);
    if (!root || root->uid == ::geteuid() || (root->mode & (S_IWGRP | S_IWOTH)) != 0) return;
    spdlog::warn(
        "{}: its root directory belongs to user {}, so you can make nothing in it. Mount it with "
        "-o uid={} to show everything as yours, or let root give it to you",
        place_.path, root->uid, ::geteuid());
  }

  // An earlier change of the keyring may have left this for the next mount. The volume can be used
  // without it.
  void mend_keyring() {
    Result<> mended;
    if (keys_.access->completed) {
      mended = keyring_->replace(metadata::confirm_recipient(keys_.keyring, *keys_.access));
    } else if (keys_.keyring_is_torn) {
      mended = keyring_->finish_update();
    }
    if (!mended) {
      spdlog::warn("{}: the keyring could not be brought up to date: {}", place_.path,
                   mended.error().message);
    }
  }

  void note_age(const metadata::VolumeAge& age, Witness::Moment moment) const {
    tools::note_age(place_, keys_, keyring_->generation(), age, moment);
  }

  // A witness that cannot be reached holds nothing up: it is told when that begins and ends, and at
  // the closing. Returns whether the witness knows it.
  bool note_age_outside(const metadata::VolumeAge& age, Witness::Moment moment) {
    const auto noted =
        tools::note_age_outside(*outside_, keys_, keyring_->generation(), age, moment);
    const bool is_closing = moment == Witness::Moment::closed;
    if (!noted && (is_closing || !outside_is_behind_)) {
      spdlog::warn(
          "{}: how far the volume has come could not be kept: {}{}", place_.path,
          noted.error().message,
          is_closing ? ". It notices an older state only as of when it was last reached" : "");
    } else if (noted && outside_is_behind_) {
      spdlog::info("{}: {} is reached again", place_.path, outside_->name());
    }
    outside_is_behind_ = !noted;
    return noted.has_value();
  }

  // Once all that the start needs has been done: the mount, the watcher, the engine, the sockets.
  // An ordinary user's daemon runs fusermount3, which is set-uid, to unmount, and the driver of a
  // GPU may run programs and make calls of its own.
  Result<> give_up_calls() {
#ifdef NACRE_SANITIZER
    const bool fits = false;
#else
    const bool fits = ::geteuid() == 0 && !uses_gpu(mounted_->engine());
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
    rotation_.reset();
    outside_keeper_.reset();
    age_keeper_.reset();
    const auto closed = mounted_->close();
    if (closed && !plan_.volume_options.read_only) {
      note_age(mounted_->age(), Witness::Moment::closed);
      // While the lock is held: another mount would be told of an older state afterwards.
      if (outside_) note_age_outside(mounted_->age(), Witness::Moment::closed);
    }
    keyring_.reset();
    mounted_.reset();
    if (!closed) lock_->leave_name();
    lock_.reset();
    return closed;
  }

  const MountPlan& plan_;
  VolumePlace place_;
  Readiness& readiness_;
  const LogOptions log_options_;
  std::optional<metadata::VolumeLock> lock_;
  metadata::VolumeKeys keys_;
  std::unique_ptr<fs::Mounted> mounted_;
  std::optional<metadata::KeyringKeeper> keyring_;
  std::optional<OutsideWitness> outside_;
  bool outside_is_behind_ = false;  // outside_keeper_'s thread's, while there is one
  std::optional<AgeKeeper> age_keeper_;
  std::optional<AgeKeeper> outside_keeper_;
  std::unique_ptr<fs::Rotation> rotation_;
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
  mallopt(M_ARENA_MAX,
          static_cast<int>(std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u)));
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
