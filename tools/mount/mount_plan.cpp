// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/mount_plan.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fs/fuse/mount_options.h"
#include "tools/cli/command_line.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/help_text.h"
#include "tools/cli/known_volumes.h"
#include "tools/cli/nearest_word.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

constexpr std::string_view mount_type = "nacre";
// mount.nacre's own options; they follow the file system's in the list that a user sees.
constexpr std::string_view own_options =
    " passphrase-file=FILE passphrase-fd=NUMBER passphrase-command=COMMAND identity=KEY "
    "fingerprint=HEX accept-older-state witness=FILE witness-command=COMMAND witness-may-fail "
    "kdf-limit=SIZE engine=ENGINE log-file=FILE log=TARGET "
    "metrics=ADDRESS sandbox=on|off|auto nofail";

Result<int> parse_descriptor(std::string_view value) {
  int number = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("mount option passphrase-fd={}: expected the number of an open file", value));
  }
  return number;
}

Result<SandboxMode> parse_sandbox(std::string_view value) {
  if (value == "auto") return SandboxMode::automatic;
  if (value == "on") return SandboxMode::on;
  if (value == "off") return SandboxMode::off;
  return fail(ErrorCode::invalid_argument,
              fmt::format("mount option sandbox={}: expected on, off or auto", value));
}

Result<> choose_log(std::string_view value, MountPlan& plan) {
  constexpr std::string_view json_prefix = "json:";
  plan.log_file.clear();
  plan.log_target = LogTarget::automatic;
  if (value == "syslog") return {};
  if (value == "journal") {
    plan.log_target = LogTarget::journal;
    return {};
  }
  if (value.starts_with(json_prefix)) {
    value.remove_prefix(json_prefix.size());
    plan.log_target = LogTarget::json;
  }
  if (!value.starts_with('/')) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("mount option log={}: expected journal, syslog, /FILE or json:/FILE", value));
  }
  plan.log_file = value;
  return {};
}

// True when the option is one of mount.nacre's own; false leaves it to the file system.
Result<bool> take_own_option(std::string_view option, std::string& engine_name, MountPlan& plan) {
  if (option == "accept-older-state" || option == "accept_older_state") {
    plan.secret.accept_older_state = true;
    return true;
  }
  if (option == "witness-may-fail" || option == "witness_may_fail") {
    plan.witness.may_fail = true;
    return true;
  }
  if (option == "format=2") {
    plan.expects_format_2 = true;
    return true;
  }
  if (option == "nofail") {
    plan.no_fail = true;
    return true;
  }
  const auto equals = option.find('=');
  if (equals == std::string_view::npos) return false;
  std::string name(option.substr(0, equals));
  std::replace(name.begin(), name.end(), '_', '-');
  const std::string value(option.substr(equals + 1));
  if (name == "passphrase-file") {
    plan.secret.passphrase_file = value;
  } else if (name == "passphrase-fd" && !value.empty()) {
    NACRE_ASSIGN(plan.secret.passphrase_fd, parse_descriptor(value));
  } else if (name == "passphrase-fd") {
    // A missing value is reported below.
  } else if (name == "passphrase-command") {
    plan.secret.passphrase_command = value;
  } else if (name == "witness") {
    plan.witness.file = value;
  } else if (name == "witness-command") {
    plan.witness.command = value;
  } else if (name == "identity") {
    plan.secret.identity = value;
  } else if (name == "fingerprint" && !value.empty()) {
    NACRE_ASSIGN(plan.secret.fingerprint, parse_fingerprint(value));
  } else if (name == "fingerprint") {
    // A missing value is reported below.
  } else if (name == "kdf-limit" && !value.empty()) {
    NACRE_ASSIGN(const auto limit, parse_kdf_limit(value));
    metadata::set_kdf_limit(limit);
  } else if (name == "kdf-limit") {
    // A missing value is reported below.
  } else if (name == "engine") {
    engine_name = value;
  } else if (name == "log-file") {
    plan.log_file = value;
  } else if (name == "log" && !value.empty()) {
    NACRE_TRY(choose_log(value, plan));
  } else if (name == "log") {
    // A missing value is reported below.
  } else if (name == "sandbox" && !value.empty()) {
    NACRE_ASSIGN(plan.sandbox, parse_sandbox(value));
  } else if (name == "sandbox") {
    // A missing value is reported below.
  } else if (name == "metrics" && !value.empty()) {
    NACRE_ASSIGN(plan.metrics, fs::parse_metrics_address(value));
  } else if (name == "metrics") {
    // A missing value is reported below.
  } else {
    return false;
  }
  if (value.empty()) {
    return fail(ErrorCode::invalid_argument, fmt::format("mount option {} has no value", option));
  }
  return true;
}

// For an unknown option: the options of both lists, the one that was perhaps meant first.
Error with_all_options(Error error, std::string_view option) {
  const std::string unknown = fmt::format("unknown mount option {}", option);
  if (!error.message.starts_with(unknown)) return error;
  error.message += own_options;
  std::vector<std::string> names;
  std::istringstream words(error.message.substr(error.message.find(':') + 1));
  for (std::string word; words >> word;)
    names.push_back(word.substr(0, word.find('=')));
  const std::string meant = nearest_word(option.substr(0, option.find('=')), names);
  if (!meant.empty()) {
    error.message.insert(unknown.size(), fmt::format("; did you mean {}?", meant));
  }
  return error;
}

Result<> take_options(const MountArguments& arguments, std::string& engine_name, MountPlan& plan) {
  for (const auto& list : arguments.options) {
    std::string_view rest = list;
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      const auto option = rest.substr(0, comma);
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
      if (option.empty()) continue;
      NACRE_ASSIGN(const bool is_own, take_own_option(option, engine_name, plan));
      if (is_own) continue;
      const auto parsed = fs::parse_mount_options(option, plan.fuse, plan.volume_options);
      if (parsed || arguments.sloppy) continue;
      return tl::unexpected(with_all_options(parsed.error(), option));
    }
  }
  return {};
}

}  // namespace

void add_mount_arguments(CLI::App& app, MountArguments& arguments) {
  app.add_option("VOLUME", arguments.volume, "The volume's directory")->required();
  app.add_option("MOUNTPOINT", arguments.mountpoint, "An empty directory")->required();
  app.add_option(
         "-o", arguments.options,
         "Mount options, separated by commas: ro, allow_other, commit=SECONDS, cache=SIZE, "
         "dirty=SIZE, space_ratio=NUMBER and others (an unknown one lists them all); "
         "passphrase-file=, "
         "identity=, fingerprint=, engine=, log-file= for /etc/fstab; metrics=ADDRESS; log=journal")
      ->allow_extra_args(false);
  add_secret_options(app, arguments.secret);
  add_outside_witness_options(app, arguments.witness);
  app.add_option("--engine", arguments.engine, "What compresses and encrypts: auto, cpu or cuda")
      ->capture_default_str();
  app.add_flag("--foreground", arguments.foreground,
               "Do not become a daemon: serve until unmounted");
  app.add_option("--log-file", arguments.log_file,
                 "Where the daemon writes its messages (default: syslog)");
  app.add_flag("-v,--verbose", arguments.verbose, "More messages");
  app.add_flag("-f", arguments.fake, "Check the arguments, but do not mount");
  app.add_flag("-s", arguments.sloppy, "Ignore unknown mount options");
  app.add_flag("-n", arguments.no_mtab, "For mount(8): there is no mtab to write");
  app.add_option("-N", arguments.mount_namespace, "Mount in this mount namespace (a file)");
  app.add_option("-t", arguments.type, "For mount(8): the type, nacre or fuse.nacre");
  app.get_option("-o")->type_name("OPTION");
  app.get_option("-N")->type_name("NAMESPACE");
  app.get_option("-t")->type_name("TYPE");
  mark_seldom(app, {"-s", "-n", "-N", "-t"});
  app.footer(
      "Examples:\n"
      "  mount.nacre ~/vault ~/private\n"
      "  mount.nacre -o ro,idle=600 ~/vault ~/private --identity me.pem\n"
      "  mount -t nacre -o passphrase-file=/root/vault.pass /srv/vault /mnt/vault\n"
      "Exit status: 0 mounted and usable, 2 usage, 4 damaged volume, 8 failed,\n"
      "16 wrong key, 32 volume or mount point in use");
}

Result<MountPlan> make_mount_plan(const MountArguments& arguments) {
  if (!arguments.type.empty() && arguments.type != mount_type &&
      arguments.type != fmt::format("fuse.{}", mount_type)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("-t {}: this mounts file systems of type nacre only", arguments.type));
  }
  MountPlan plan{.volume = arguments.volume,
                 .mountpoint = arguments.mountpoint,
                 .secret = arguments.secret,
                 .witness = arguments.witness,
                 .log_file = arguments.log_file,
                 .foreground = arguments.foreground,
                 .verbose = arguments.verbose};
  plan.fuse.fsname = arguments.volume;
  std::string engine_name = arguments.engine;
  NACRE_TRY(take_options(arguments, engine_name, plan));
  NACRE_ASSIGN(plan.engine, parse_engine(engine_name));
  if (const int sources = !plan.secret.passphrase_file.empty() + (plan.secret.passphrase_fd >= 0) +
                          !plan.secret.passphrase_command.empty();
      sources > 1) {
    return fail(ErrorCode::invalid_argument,
                "two options say where the passphrase comes from: "
                "give only one");
  }
  return plan;
}

}  // namespace nacre::tools
