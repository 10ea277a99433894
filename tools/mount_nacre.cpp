// SPDX-License-Identifier: Apache-2.0
// mount.nacre: mounts a volume, also as a helper of mount(8). Errors that
// can be found at once are reported before anybody is asked for a passphrase. The rest is the
// daemon's work (tools/mount/serve.h).
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fs/control/mount_table.h"
#include "fs/fuse/connection_watcher.h"
#include "fs/fuse/mount_point.h"
#include "gpu_engine/base/printable.h"
#include "metadata/volume_files.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/own_files.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/mount/daemon.h"
#include "tools/mount/mount_plan.h"
#include "tools/mount/serve.h"

namespace nacre::tools {
namespace {

Result<> enter_namespace(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return fail(ErrorCode::io, fmt::format("-N {}: {}", file, strerror(errno)));
  }
  const int error = ::setns(descriptor, CLONE_NEWNS) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error == 0) return {};
  return fail(ErrorCode::io,
              fmt::format("-N {}: cannot enter this mount namespace: {}", file, strerror(error)));
}

// A mount over its own volume would hide the volume; a mount within it would be part of it.
Result<> check_places_apart(const std::string& volume, const std::string& mountpoint) {
  if (!lies_below(volume, mountpoint) && !lies_below(mountpoint, volume)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("the mount point {} and the volume {} lie within one another: choose a "
                          "mount point elsewhere",
                          mountpoint, volume));
}

// The user gave the two folders in the wrong order.
Result<> check_not_swapped(const MountPlan& plan) {
  const auto is_volume = [](const std::string& path) {
    const auto directory = metadata::open_posix_directory(path);
    if (!directory || fs::find_nacre_mount(path)) return false;
    const auto state = metadata::inspect_directory(**directory);
    return state && *state == metadata::DirectoryState::volume;
  };
  // Looking into a mount point whose daemon hangs would block this process.
  if (fs::find_nacre_mount(plan.mountpoint) || !is_volume(plan.mountpoint) ||
      is_volume(plan.volume)) {
    return {};
  }
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("{} is a volume and {} is not: give the volume first, then the mount point: "
                  "mount.nacre {} {}",
                  plan.mountpoint, plan.volume, plan.mountpoint, plan.volume));
}

// The mount would hide a file that is made there before.
Result<> check_not_covered(std::string_view what, const std::string& file,
                           const std::string& mountpoint) {
  if (file.empty()) return {};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  const std::string resolved = std::filesystem::weakly_canonical(folder, error);
  if (error || !lies_below(resolved, mountpoint)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} {} would lie below the mount point {}, which would hide it: choose "
                          "another place",
                          what, file, mountpoint));
}

// Leaves nothing open, because the daemon closes all descriptors that it inherits.
Result<MountPlan> prepare(const MountArguments& arguments) {
  if (!arguments.mount_namespace.empty()) NACRE_TRY(enter_namespace(arguments.mount_namespace));
  NACRE_ASSIGN(auto plan, make_mount_plan(arguments));
  NACRE_TRY(check_not_swapped(plan));
  NACRE_ASSIGN(const auto place, find_volume(plan.volume));
  plan.volume = place.path;
  // Others read the mount table in other folders, so the path there is absolute. A name that the
  // user asked for stays.
  if (plan.fuse.fsname == arguments.volume) plan.fuse.fsname = place.path;
  const auto environment = fs::MountEnvironment::current();
  NACRE_TRY(fs::check_fuse(plan.fuse.allow_other, environment));
  if (fs::take_dead_mount_away(plan.mountpoint, environment)) {
    print_note(fmt::format("{}: removed a mount whose daemon had ended", plan.mountpoint));
  }
  // The next check would say that such a mount point is not empty, and propose -o nonempty.
  const std::unique_ptr<char, void (*)(void*)> resolved(
      ::realpath(plan.mountpoint.c_str(), nullptr), std::free);
  if (resolved) NACRE_TRY(check_places_apart(place.path, resolved.get()));
  NACRE_ASSIGN(plan.mountpoint,
               fs::check_mount_point(plan.mountpoint, plan.fuse.nonempty, environment));
  if (!plan.fuse.nonempty) leave_alone(plan.mountpoint);
  if (!plan.log_file.empty() && plan.log_file.front() != '/') {
    // The daemon has another working directory, so the path becomes absolute.
    const std::unique_ptr<char, void (*)(void*)> here(::getcwd(nullptr, 0), std::free);
    plan.log_file = fmt::format("{}/{}", here ? here.get() : "", plan.log_file);
  }
  NACRE_TRY(settle_outside_witness(plan.witness, place.path));
  NACRE_TRY(check_not_covered("the witness", plan.witness.file, plan.mountpoint));
  NACRE_TRY(check_not_covered("the log file", plan.log_file, plan.mountpoint));
  if (plan.metrics) {
    NACRE_TRY(check_not_covered("the metrics' socket", plan.metrics->unix_path, plan.mountpoint));
  }
  return plan;
}

// As mount(8) has it for devices: whoever mounts all that /etc/fstab lists goes on.
bool is_left_out(const MountArguments& arguments) {
  const auto plan = make_mount_plan(arguments);
  std::error_code error;
  if (!plan || !plan->no_fail || std::filesystem::exists(plan->volume, error) || error)
    return false;
  print_note(fmt::format("{} is not there: nothing was mounted (nofail)", printable(plan->volume)));
  return true;
}

int run(const MountArguments& arguments) {
  harden_process();
  if (is_left_out(arguments)) return exit_fine;
  const auto plan = prepare(arguments);
  if (!plan) return report(plan.error());
  if (arguments.fake) return exit_fine;
  warn_of_unencrypted_swap();
  auto secret = read_secret(plan->secret, plan->volume);
  if (!secret) return report(secret.error());
  if (plan->foreground) {
    Readiness nobody;
    return serve_volume(*plan, std::move(*secret), nobody);
  }
  return run_as_daemon([&](Readiness& readiness) -> int {
    return serve_volume(*plan, std::move(*secret), readiness);
  });
}

std::function<int()> add_arguments(CLI::App& app) {
  auto arguments = std::make_shared<MountArguments>();
  add_mount_arguments(app, *arguments);
  return [arguments] { return run(*arguments); };
}

}  // namespace
}  // namespace nacre::tools

int main(int argc, char** argv) {
  if (nacre::fs::is_connection_watcher(argc, argv)) return nacre::fs::watch_connection(argc, argv);
  return nacre::tools::run_command_line("mount.nacre", "Mount a Nacre volume", argc, argv,
                                        nacre::tools::add_arguments);
}
