// SPDX-License-Identifier: Apache-2.0
// What a command line of mount.nacre asks for: its own options, those after -o, and what mount(8)
// adds when it calls mount.nacre as a helper.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fs/control/metrics_address.h"
#include "fs/fuse/fuse_session.h"
#include "fs/mount/mounted.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/engine.h"
#include "tools/cli/outside_witness.h"
#include "tools/cli/secret_source.h"
#include "tools/mount/logging.h"

namespace CLI {
class App;
}

namespace nacre::tools {

// automatic: on for root's mounts that use no GPU.
enum class SandboxMode : std::uint8_t { automatic, on, off };

struct MountArguments {
  std::string volume;
  std::string mountpoint;
  std::vector<std::string> options;  // after -o
  SecretOptions secret;
  OutsideWitnessOptions witness;
  std::string engine = "auto";
  std::string log_file;
  bool foreground = false;
  bool verbose = false;
  bool fake = false;            // -f: do everything except the mount
  bool sloppy = false;          // -s: unknown options are ignored
  bool no_mtab = false;         // -n: there is no mtab
  std::string mount_namespace;  // -N
  std::string type;             // -t
};
void add_mount_arguments(CLI::App& app, MountArguments& arguments);

struct MountPlan {
  std::string volume;
  std::string mountpoint;
  SecretOptions secret;
  OutsideWitnessOptions witness;
  fs::FuseOptions fuse;
  fs::VolumeOptions volume_options;
  engine::EngineChoice engine = engine::EngineChoice::automatic;
  std::string log_file;
  LogTarget log_target = LogTarget::automatic;
  std::optional<fs::MetricsAddress> metrics;
  SandboxMode sandbox = SandboxMode::off;
  bool foreground = false;
  bool verbose = false;
  // The volume is expected to be of format 2. No help names it as long as that is a draft.
  bool expects_format_2 = metadata::settled_format == metadata::EpochFormat::two;
  bool no_fail = false;  // nofail: a volume that is not there is no failure
};

// invalid_argument names the option. Of the options after -o these are mount.nacre's own, for
// /etc/fstab: passphrase-file=, passphrase-fd=, passphrase-command=, identity=, fingerprint=,
// accept-older-state, witness=, witness-command=, witness-may-fail, kdf-limit=, engine=, log-file=,
// log=, metrics=, sandbox= (also with '_'), nofail.
Result<MountPlan> make_mount_plan(const MountArguments& arguments);

}  // namespace nacre::tools
