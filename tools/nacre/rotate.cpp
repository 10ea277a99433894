// SPDX-License-Identifier: Apache-2.0
// nacre key rotate VOLUME|MOUNTPOINT: gives everything that a volume holds a new key. A mounted
// volume does it itself while it is used; one that is not mounted is opened for it.
#include "tools/nacre/rotate.h"

#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/rotation_requests.h"
#include "fs/rotation/rotation.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/keys/keyring_keeper.h"
#include "metadata/keys/keyring_rotation.h"
#include "metadata/text/exact_bytes.h"
#include "tools/cli/command_line.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/help_text.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/suite_option.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/key_change.h"
#include "tools/nacre/offline_volume.h"
#include "tools/nacre/rotation_seals.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds progress_interval{500};

std::string text(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_string() ? printable(at->get<std::string>()) : "";
}
std::uint64_t number(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

Result<fs::RotationOptions> parse(const RotateOptions& asked) {
  fs::RotationOptions options{.level = asked.level};
  if (!asked.cipher.empty()) {
    NACRE_ASSIGN(options.suite, engine::suite_from_name(asked.cipher));
    NACRE_TRY(check_legacy_consent(*options.suite, asked.allow_legacy_cipher));
  }
  if (!asked.codec.empty()) {
    NACRE_ASSIGN(options.codec, engine::codec_from_name(asked.codec));
    if (!engine::codec_is_choosable(*options.codec)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("this Nacre does not have the codec {}", asked.codec));
    }
  } else if (asked.level != 0) {
    return fail(ErrorCode::invalid_argument, "--level goes with --codec");
  }
  if (!asked.rate.empty()) {
    NACRE_ASSIGN(options.rate_bytes_per_second, parse_size(asked.rate));
  }
  options.to_format_2 = options.to_format_2 || asked.format == 2;
  options.accept_unreadable = asked.accept_unreadable;
  return options;
}

void show(ProgressPrinter& printer, const fs::RotationStatus& status) {
  printer.update({.stage = status.stage, .done = status.done_bytes, .total = status.total_bytes});
}

// Prints the new fingerprint, which the other users of the volume must compare.
void tell_fingerprint(const std::string& fingerprint) {
  print_safely("  the volume's new fingerprint  {}\n", fingerprint);
}
int tell_end(std::uint64_t epoch, const std::string& fingerprint) {
  print_safely("everything is sealed under a new key (epoch {}); the older ones are gone\n", epoch);
  tell_fingerprint(fingerprint);
  return exit_fine;
}

// --- Not mounted.

int rotate_volume(const VolumePlace& place, const SecretOptions& secret_options,
                  const RotateOptions& asked, fs::RotationOptions options) {
  harden_process();
  ProgressPrinter printer(true);
  std::uint32_t epoch = 0;
  std::string fingerprint;
  const auto rotated = [&]() -> Result<> {
    NACRE_ASSIGN(const auto lock, metadata::VolumeLock::acquire(
                                      place.path, {.mode = metadata::LockMode::exclusive}));
    NACRE_ASSIGN(const auto secret, read_secret(secret_options, place.path));
    NACRE_ASSIGN(const auto keys, unlock(place, secret, secret_options));
    NACRE_ASSIGN(const auto choice, parse_engine(asked.engine.empty() ? "cpu" : asked.engine));
    const auto warn = [](std::string_view words) { print_note(std::string(words)); };
    NACRE_ASSIGN(const auto volume,
                 open_offline(place, keys, secret_options, engine_options(choice, warn)));
    metadata::KeyringKeeper keyring(
        place.directory, keys.keys, keys.keyring,
        [&](std::uint64_t generation) { return volume->note_keyring_generation(generation); });
    fs::Rotation rotation(place.directory, keys.keys, keyring, *volume);
    options.passphrase = std::get_if<SecretBytes>(&secret);
    NACRE_ASSIGN(options.seals, collect_seals(place, *keys.access, asked.passphrase_files));
    const auto run = [&](Result<> begun) -> Result<> {
      // From now on the volume has this key, whatever happens next.
      remember_new_volume(place, *keys.keys);
      NACRE_TRY(begun);
      return rotation.run([&](const fs::RotationStatus& status) { show(printer, status); });
    };
    Result<> done;
    const bool is_interrupted = keys.keys->is_rotating();
    const bool wants_another_format =
        asked.format == 2 && keys.keys->current_epoch().format != metadata::EpochFormat::two;
    if (is_interrupted && (options.suite || options.codec || wants_another_format)) {
      done = fail(ErrorCode::busy,
                  fmt::format("{}: a rotation that was interrupted has to be done before one with "
                              "another cipher, codec or format begins: run 'nacre key rotate' "
                              "without such an option first",
                              place.path));
    } else if (is_interrupted) {
      print_note(fmt::format("{}: a rotation that was interrupted goes on{}", place.path,
                             asked.afresh ? ", and another one follows it" : ""));
      done = run(rotation.resume(options.rate_bytes_per_second));
    }
    if (done && (!is_interrupted || asked.afresh)) {
      done = run(rotation.begin(options,
                                [&](const fs::RotationStatus& status) { show(printer, status); }));
    }
    epoch = keys.keys->current_epoch_number();
    fingerprint = fingerprint_of(*keys.keys);
    const auto closed = close_offline(place, keys, *volume);
    NACRE_TRY(done);
    return closed;
  }();
  printer.clear();
  return rotated ? tell_end(epoch, fingerprint) : report(rotated.error());
}

// --- Mounted.

Result<json> ask(const fs::MountEntry& mount, const json& message) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  return client.request_with(message, std::nullopt);
}

// Of a mounted volume the daemon has no passphrase. One is asked for only if the rotation needs it.
Result<SecretBytes> seals_for_daemon(const VolumePlace& place, const SecretOptions& secret_options,
                                     const RotateOptions& asked) {
  NACRE_ASSIGN(const auto found, metadata::find_keyring(*place.directory));
  if (!needs_seals(found.keyring.claims)) return SecretBytes();
  harden_process();
  NACRE_ASSIGN(const auto secret, read_secret(secret_options, place.path));
  NACRE_ASSIGN(const auto volume, unlock(place, secret, secret_options));
  NACRE_ASSIGN(const auto seals, collect_seals(place, *volume.access, asked.passphrase_files));
  NACRE_TRY(metadata::check_can_be_rotated(volume.keyring, seals));
  return fs::encode_seals(seals);
}

// Learns the fingerprint of the key that the mounted volume has now.
Result<std::string> learn_fingerprint(const fs::MountEntry& mount) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_ASSIGN(const auto info, client.request("info", std::nullopt));
  NACRE_ASSIGN(const auto place, open_place(metadata::get_bytes(info, "volume").value_or("")));
  NACRE_ASSIGN(auto other, fs::ControlClient::connect(mount));
  NACRE_TRY(other.check_serves(mount, place.path));
  NACRE_ASSIGN(const auto reply, other.request("rotation", std::nullopt));
  const std::string fingerprint = text(reply, "fingerprint");
  remember_fingerprint(place, text(reply, "volume_id"), fingerprint, number(reply, "format") == 2);
  return fingerprint;
}

// The volume's new fingerprint, or none if a survey comes before the new key.
Result<std::optional<std::string>> begin_in_mount(const fs::MountEntry& mount,
                                                  const SecretOptions& secret_options,
                                                  const RotateOptions& asked,
                                                  const fs::RotationOptions& options) {
  json message = {{"command", "rotate"}, {"rate", options.rate_bytes_per_second}};
  if (!asked.cipher.empty()) message["cipher"] = asked.cipher;
  if (!asked.codec.empty()) message["codec"] = asked.codec;
  message["level"] = static_cast<unsigned>(asked.level);
  if (asked.format != 0) message["format"] = static_cast<unsigned>(asked.format);
  if (asked.accept_unreadable) message["accept_unreadable"] = true;
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_ASSIGN(const auto info, client.request("info", std::nullopt));
  NACRE_ASSIGN(const auto place, open_place(metadata::get_bytes(info, "volume").value_or("")));
  // The fingerprint is noted for that folder.
  NACRE_TRY(client.check_serves(mount, place.path));
  NACRE_ASSIGN(const SecretBytes seals, seals_for_daemon(place, secret_options, asked));
  message["seals_size_bytes"] = seals.size();
  NACRE_ASSIGN(auto other, fs::ControlClient::connect(mount));
  NACRE_TRY(other.check_serves(mount, place.path));
  NACRE_ASSIGN(const auto reply, other.request_with(message, seals.view(), std::nullopt));
  if (const auto survey = reply.find("survey"); survey != reply.end()) return std::nullopt;
  const std::string fingerprint = text(reply, "fingerprint");
  remember_fingerprint(place, text(reply, "volume_id"), fingerprint, number(reply, "format") == 2);
  if (asked.format == 2 && number(reply, "format") != 2) {
    return fail(ErrorCode::unsupported,
                fmt::format("the daemon at {} is of an older version, which cannot move the volume "
                            "to another format: the keys are rotated, and the format stays",
                            mount.mountpoint));
  }
  return std::optional(fingerprint);
}

// Shows progress until the rotation is done, paused or stopped. Returns the last state. If there is
// no fingerprint yet, learns it as soon as the new key is in use.
Result<json> follow(const fs::MountEntry& mount, std::optional<std::string>& fingerprint) {
  ProgressPrinter printer(true);
  while (true) {
    NACRE_ASSIGN(const auto reply, ask(mount, {{"command", "rotation"}}));
    const auto rotation = reply.find("rotation");
    if (rotation == reply.end()) return fail(ErrorCode::io, "the daemon says nothing of it");
    const std::string state = text(*rotation, "state");
    const std::string stage = text(*rotation, "stage");
    if (!fingerprint && stage != "survey" && (state != "stopped")) {
      NACRE_ASSIGN(fingerprint, learn_fingerprint(mount));
    }
    if (state != "running" && state != "waiting") return *rotation;
    printer.update({.stage = stage,
                    .done = number(*rotation, "done_bytes"),
                    .total = number(*rotation, "total_bytes")});
    std::this_thread::sleep_for(progress_interval);
  }
}

int rotate_mount(const fs::MountEntry& mount, const SecretOptions& secret_options,
                 const RotateOptions& asked, const fs::RotationOptions& options) {
  if (const auto writable = check_writable(mount); !writable) return report(writable.error());
  const auto fingerprint = begin_in_mount(mount, secret_options, asked, options);
  if (!fingerprint) return report(fingerprint.error());
  if (!asked.wait && !*fingerprint) {
    print_safely(
        "all records are read first, and then the rotation begins; 'nacre key status {}' tells how "
        "far it is. An unmount before that ends it\n",
        mount.mountpoint);
    return exit_fine;
  }
  if (!asked.wait) {
    print_safely("the rotation has begun; 'nacre key status {}' tells how far it is\n",
                 mount.mountpoint);
    tell_fingerprint(**fingerprint);
    return exit_fine;
  }
  std::optional<std::string> new_fingerprint = *fingerprint;
  const auto last = follow(mount, new_fingerprint);
  if (!last) return report(last.error());
  if (text(*last, "state") == "none" && new_fingerprint) {
    return tell_end(number(*last, "epoch"), *new_fingerprint);
  }
  print_rotation(*last);
  return text(*last, "state") == "damaged" ? exit_damage : exit_operational;
}

int control_rotation(const std::string& path, const std::string& command, const std::string& rate) {
  const auto done = [&]() -> Result<json> {
    NACRE_ASSIGN(const auto target, find_rotation_target(path));
    const auto* mount = std::get_if<fs::MountEntry>(&target);
    if (mount == nullptr) {
      return fail(ErrorCode::not_found, fmt::format("{} is not mounted, so nothing runs there: "
                                                    "'nacre key rotate' goes on with a rotation",
                                                    path));
    }
    json message = {{"command", command}};
    if (!rate.empty()) {
      NACRE_ASSIGN(const auto bytes, parse_size(rate));
      message["rate"] = bytes;
    }
    return ask(*mount, message);
  }();
  if (!done) return report(done.error());
  if (const auto rotation = done->find("rotation"); rotation != done->end()) {
    print_rotation(*rotation);
  }
  return exit_fine;
}

}  // namespace

Result<RotationTarget> find_rotation_target(const std::string& path) {
  if (auto mount = fs::find_nacre_mount(path)) return RotationTarget(std::move(*mount));
  auto place = find_unmounted_volume(path);
  if (!place) return tl::unexpected(place.error());
  if (auto mount = fs::find_mount_of_volume(place->path)) return RotationTarget(std::move(*mount));
  return RotationTarget(std::move(*place));
}

Result<> check_may_revoke(const fs::MountEntry& mount) {
  NACRE_ASSIGN(const auto reply, ask(mount, {{"command", "rotation"}}));
  const auto rotation = reply.find("rotation");
  if (rotation == reply.end()) return fail(ErrorCode::io, "the daemon says nothing of rotations");
  if (text(*rotation, "rotation") == "none") return {};
  return fail(
      ErrorCode::busy,
      fmt::format("--revoke: a rotation is under way at {}, which made its new key for all who "
                  "could open the volume when it began; nothing was changed. Try again when it is "
                  "done ('nacre key status' tells; a paused one wants 'nacre key rotate "
                  "--resume'). Without --revoke it is taken away at once, and a later 'nacre key "
                  "rotate' does the rest",
                  mount.mountpoint));
}

int rotate_keys(const std::string& path, const SecretOptions& secret, const RotateOptions& asked) {
  auto options = parse(asked);
  if (!options) return report(options.error());
  const auto target = find_rotation_target(path);
  if (!target) return report(target.error());
  if (options->suite && engine::is_legacy(*options->suite)) {
    print_warning(fmt::format("{} will be sealed with {}, a legacy cipher that protects too little",
                              path, engine::to_string(*options->suite)));
  }
  if (const auto* mount = std::get_if<fs::MountEntry>(&*target)) {
    if (!asked.engine.empty()) {
      return report({ErrorCode::invalid_argument,
                     "--engine is for volumes that are not mounted: a mount has its own"});
    }
    return rotate_mount(*mount, secret, asked, *options);
  }
  return rotate_volume(std::get<VolumePlace>(*target), secret, asked, std::move(*options));
}

void add_rotate_command(CLI::App& key, Action& action) {
  CLI::App* command = key.add_subcommand("rotate", "Encrypt everything anew under a new key");
  struct RotateArguments : RotateOptions {
    std::string path;
    SecretOptions secret;
    bool pause = false;
    bool resume = false;
    bool no_wait = false;
  };
  auto arguments = std::make_shared<RotateArguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  auto* cipher =
      command->add_option("--cipher", arguments->cipher, "Use another cipher suite from now on");
  command->add_flag("--allow-legacy-cipher", arguments->allow_legacy_cipher,
                    "Allow the ciphers DES and 3DES, which protect too little");
  auto* codec =
      command->add_option("--codec", arguments->codec,
                          "Use another codec from now on, and compress everything anew with it");
  command
      ->add_option("--level", arguments->level,
                   "Level of that codec; 0: its default, 1: fastest, 9: smallest")
      ->check(CLI::Range(0, metadata::codec_level_max));
  auto* rate = command->add_option(
      "--rate", arguments->rate,
      "Read and write at most this many bytes a second together, for example 32M. By "
      "default a mounted volume leaves room for others, and an unmounted one goes as "
      "fast as it can");
  command->add_option("--engine", arguments->engine,
                      "For an unmounted volume: cpu (default), cuda or auto");
  // No help names it as long as format 2 is a draft.
  command->add_option("--format", arguments->format, "2")->check(CLI::Range(2, 2))->group("");
  auto* pause =
      command->add_flag("--pause", arguments->pause, "Pause the rotation of a mounted volume");
  auto* resume = command->add_flag("--resume", arguments->resume, "Continue a paused rotation");
  pause->excludes(resume)->excludes(cipher)->excludes(codec)->excludes(rate);
  resume->excludes(cipher)->excludes(codec);
  command->add_flag("--no-wait", arguments->no_wait,
                    "Start the rotation and do not wait for its end");
  // Format 2 alone asks for it.
  command
      ->add_flag("--accept-unreadable", arguments->accept_unreadable,
                 "Begin although records of files cannot be read, and count these as damaged")
      ->group("");
  add_passphrase_files_option(*command, arguments->passphrase_files);
  add_secret_options(*command, arguments->secret);
  mark_seldom(*command, {"--allow-legacy-cipher", "--level"});
  command->footer(
      "Examples:\n"
      "  nacre key rotate ~/private                      while it is used\n"
      "  nacre key rotate --codec zstd --rate 64M ~/private\n"
      "Exit status: 0 done, 2 usage, 4 all but damaged records is done, 8 failed,\n"
      "16 wrong key, 32 in use");
  command->callback([&action, arguments] {
    action = [arguments]() -> int {
      if (arguments->pause) return control_rotation(arguments->path, "rotation_pause", "");
      if (arguments->resume) {
        return control_rotation(arguments->path, "rotation_resume", arguments->rate);
      }
      RotateOptions options = *arguments;
      options.wait = !arguments->no_wait;
      const auto target = find_rotation_target(arguments->path);
      if (!options.wait && target && std::holds_alternative<VolumePlace>(*target)) {
        return report({ErrorCode::invalid_argument,
                       fmt::format("--no-wait is for mounted volumes, and {} is not: this command "
                                   "does all of it itself",
                                   arguments->path)});
      }
      return rotate_keys(arguments->path, arguments->secret, options);
    };
  });
}

}  // namespace nacre::tools
