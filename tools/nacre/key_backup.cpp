// SPDX-License-Identifier: Apache-2.0
// nacre key backup and restore: copy the keyring to a file and back. Without its keyring a volume
// cannot be opened, even with the passphrase. A keyring is small enough to be kept anywhere.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "metadata/backing/volume_lock.h"
#include "metadata/keys/keyring_recipients.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/key_change.h"
#include "tools/nacre/key_commands.h"
#include "tools/nacre/newest_keyring.h"
#include "tools/nacre/offline_volume.h"

namespace nacre::tools {

namespace {

using metadata::Keyring;

struct KeyBackupArguments {
  std::string volume;
  std::string file;
  SecretOptions secret;
  bool force = false;
};

tl::unexpected<Error> system_failure(const std::string& what) {
  const auto code = errno == EACCES || errno == EPERM ? ErrorCode::permission
                    : errno == ENOENT                 ? ErrorCode::not_found
                    : errno == EEXIST                 ? ErrorCode::exists
                    : errno == ENOSPC                 ? ErrorCode::no_space
                                                      : ErrorCode::io;
  return fail(code, fmt::format("{}: {}", what, strerror(errno)));
}

Result<> sync_key_folder(const std::string& path) {
  const auto folder = std::filesystem::absolute(path).parent_path().string();
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return system_failure(folder);
  const bool synced = ::fsync(descriptor) == 0;
  const auto failure = synced ? Result<>() : system_failure(folder);
  ::close(descriptor);
  return failure;
}

// A new file. It is removed again if it cannot be written completely.
Result<> write_new_file(const std::string& path, ByteView content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EEXIST) {
    return fail(ErrorCode::exists,
                fmt::format("{} exists already and was not changed: give another name", path));
  }
  if (descriptor < 0) return system_failure(path);
  Result<> result;
  while (result && !content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      result = system_failure(path);
    } else {
      content = content.subspan(static_cast<std::size_t>(written));
    }
  }
  if (result && ::fsync(descriptor) != 0) result = system_failure(path);
  if (::close(descriptor) != 0 && result) result = system_failure(path);
  if (result) result = sync_key_folder(path);
  if (!result) ::unlink(path.c_str());
  return result;
}

Result<> backup(const KeyBackupArguments& arguments) {
  NACRE_ASSIGN(const auto target, find_key_target(arguments.volume));
  const bool with_key = arguments.secret.names_passphrase() || !arguments.secret.identity.empty();
  std::optional<metadata::VolumeSecret> secret;
  if (with_key) {
    harden_process();
    NACRE_ASSIGN(secret, read_secret(arguments.secret, target.place.path));
  }
  NACRE_ASSIGN(const auto newest, NewestKeyring::look(target));
  std::shared_ptr<const metadata::KeyTree> keys;
  if (secret) {
    NACRE_ASSIGN(auto volume, unlock(target.place, *secret, arguments.secret));
    keys = std::move(volume.keys);
  }
  NACRE_ASSIGN(const auto found, metadata::find_keyring(*target.place.directory));
  NACRE_TRY(newest.check(found.keyring.claims, keys));
  if (!with_key) {
    for (const auto& warning : found.warnings)
      print_warning(warning.message);
  }
  NACRE_TRY(write_new_file(arguments.file, found.text));
  const Keyring& keyring = found.keyring.claims;
  print_safely("{} holds the keyring of {}: generation {}, {} recipients{}\n",
               printable(arguments.file), printable(target.place.path), keyring.generation,
               keyring.recipients.size(),
               with_key ? ", verified"
                        : " (not verified: only a key of the volume can show that it was not "
                          "changed; give --passphrase-file or --identity)");
  std::fflush(stdout);
  print_note(
      "this file opens the volume together with any secret that opens the volume now, even after "
      "that secret was removed. 'nacre key rotate' ends that, and makes the file useless");
  return {};
}

Result<Bytes> read_backup(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_failure(path);
  Bytes content;
  char buffer[64 << 10];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    content.insert(content.end(), buffer, buffer + file.gcount());
    if (content.size() > metadata::keyring_size_bytes_max) {
      return fail(ErrorCode::corrupt, fmt::format("{} is too large to be a keyring", path));
    }
  }
  return content;
}

// Reads and opens the keyring in the file, and checks that it is this volume's.
Result<metadata::VolumeKeys> open_backup(const KeyBackupArguments& arguments,
                                         const VolumePlace& place) {
  NACRE_ASSIGN(const auto text, read_backup(arguments.file));
  auto parsed = metadata::parse_keyring(text);
  if (!parsed) {
    return add_context(parsed.error(),
                       fmt::format("{} is no sound copy of a keyring", arguments.file));
  }
  NACRE_ASSIGN(const auto superblock, metadata::find_superblock(*place.directory));
  if (parsed->claims.volume_id != superblock.superblock.claims.volume_id) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is the keyring of another volume ({}), not of {} ({})",
                            arguments.file, hex(parsed->claims.volume_id), place.path,
                            hex(superblock.superblock.claims.volume_id)));
  }
  NACRE_ASSIGN(const auto secret, read_secret(arguments.secret, arguments.file));
  auto opened = metadata::open_keyring(*parsed, secret);
  if (!opened) return add_context(opened.error(), arguments.file);
  metadata::VolumeKeys volume;
  auto verified = metadata::verify_superblock(superblock.superblock, *opened->keys);
  if (!verified) {
    return fail(verified.error().code,
                fmt::format("{} does not fit {}: {}. Was it made before the volume's key was "
                            "changed ('nacre key rotate')? Then it opens nothing of what is there "
                            "now",
                            arguments.file, place.path, verified.error().message));
  }
  NACRE_TRY(recognise(place, *opened->keys, opened->access, arguments.secret));
  volume.superblock = std::move(*verified);
  volume.keyring = std::move(parsed->claims);
  volume.keys = std::move(opened->keys);
  volume.access = std::make_shared<const metadata::KeyringAccess>(std::move(opened->access));
  return volume;
}

bool has(const Keyring& keyring, const metadata::Recipient& recipient) {
  return std::any_of(
      keyring.recipients.begin(), keyring.recipients.end(),
      [&](const metadata::Recipient& other) { return other.fingerprint == recipient.fingerprint; });
}

// The keyring that the volume has now, if it is sound: the new generation must be higher, and
// recipients that it lacks would come back.
Result<std::optional<Keyring>> check_present(const KeyBackupArguments& arguments,
                                             const VolumePlace& place,
                                             const metadata::VolumeKeys& backup) {
  const auto found = metadata::find_keyring(*place.directory);
  if (!found && found.error().code == ErrorCode::unsupported) {
    return tl::unexpected(found.error());
  }
  if (!found) {
    print_note(fmt::format("the volume's keyring is replaced, because it cannot be used: {}",
                           found.error().message));
    return std::nullopt;
  }
  // This holds whether it is verified or not: its keys may be the only way to some of the data.
  if (found->keyring.claims.epochs.back().number > backup.keyring.epochs.back().number) {
    return fail(ErrorCode::not_permitted,
                fmt::format("the keyring of {} has newer keys than {}: that was made before a "
                            "rotation, and would not open what was written since; nothing was "
                            "changed",
                            place.path, arguments.file));
  }
  const auto verified = metadata::verify(
      found->keyring.seal, backup.keys->volume_subkey("keyring mac").view(), "keyring");
  if (!verified) {
    print_note(fmt::format("the volume's keyring is replaced, because it cannot be used: {}",
                           verified.error().message));
    return std::nullopt;
  }
  const Keyring& present = found->keyring.claims;
  if (!arguments.force &&
      !has(present, backup.keyring.recipients[backup.access->recipient_index])) {
    return fail(ErrorCode::not_permitted,
                fmt::format("the keyring of {} is sound, and the secret that opens {} was "
                            "removed from it: nothing was changed. To bring it back, with all "
                            "recipients in the file, add --force",
                            place.path, arguments.file));
  }
  return present;
}

void print_changes(const std::optional<Keyring>& present, const Keyring& restored) {
  if (!present) return;
  for (const auto& recipient : restored.recipients) {
    if (!has(*present, recipient)) print_safely("  opens it again:     {}\n", describe(recipient));
  }
  for (const auto& recipient : present->recipients) {
    if (!has(restored, recipient)) print_safely("  no longer opens it: {}\n", describe(recipient));
  }
}

Result<Keyring> restore_offline(const KeyBackupArguments& arguments, const VolumePlace& place) {
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::exclusive}));
  NACRE_ASSIGN(auto backup, open_backup(arguments, place));
  NACRE_ASSIGN(const auto present, check_present(arguments, place, backup));
  // If the database opens, the file has all keys that it needs.
  NACRE_ASSIGN(const auto remembered, remembered_generation(place, backup.keys));
  NACRE_TRY(metadata::check_writable(backup.superblock));
  backup.keyring.generation = std::max(
      {backup.keyring.generation, remembered, present ? present->generation : std::uint64_t{0}});
  backup.keyring = metadata::confirm_recipient(backup.keyring, *backup.access);
  // The files come before the row, for the reason that KeyringKeeper gives. Opening for writing
  // notes the row.
  NACRE_TRY(metadata::save_keyring(*place.directory, backup.keyring, *backup.keys));
  NACRE_ASSIGN(const auto volume, open_offline(place, backup, arguments.secret));
  NACRE_TRY(close_offline(place, backup, *volume));
  print_changes(present, backup.keyring);
  return std::move(backup.keyring);
}

Result<Keyring> restore_mounted(const KeyBackupArguments& arguments, const VolumePlace& place,
                                const fs::MountEntry& mount) {
  NACRE_TRY(check_writable(mount));
  NACRE_ASSIGN(auto backup, open_backup(arguments, place));
  NACRE_ASSIGN(const auto present, check_present(arguments, place, backup));
  NACRE_ASSIGN(backup.keyring.generation, mounted_keyring_generation(mount));
  backup.keyring = metadata::confirm_recipient(backup.keyring, *backup.access);
  NACRE_TRY(hand_over_keyring(mount, backup.keyring, *backup.keys));
  print_changes(present, backup.keyring);
  return std::move(backup.keyring);
}

Result<> restore(const KeyBackupArguments& arguments) {
  harden_process();
  NACRE_ASSIGN(const auto target, find_key_target(arguments.volume));
  NACRE_ASSIGN(const auto keyring, target.mount
                                       ? restore_mounted(arguments, target.place, *target.mount)
                                       : restore_offline(arguments, target.place));
  print_safely("Restored the keyring of {} from {}: generation {}, {} recipients\n",
               printable(target.place.path), printable(arguments.file), keyring.generation,
               keyring.recipients.size());
  return {};
}

using Run = Result<> (*)(const KeyBackupArguments&);

CLI::App& add_command(CLI::App& key, Action& action, const std::string& name,
                      const std::string& description, std::shared_ptr<KeyBackupArguments> arguments,
                      Run run) {
  CLI::App* command = key.add_subcommand(name, description);
  command->add_option("VOLUME", arguments->volume, "The volume's directory, or where it is mounted")
      ->required();
  add_secret_options(*command, arguments->secret);
  command->callback([&action, arguments, run] {
    action = [arguments, run] {
      const auto done = run(*arguments);
      return done ? exit_fine : report(done.error());
    };
  });
  return *command;
}

}  // namespace

void add_key_backup_commands(CLI::App& key, Action& action) {
  auto arguments = std::make_shared<KeyBackupArguments>();
  CLI::App& copying = add_command(key, action, "backup",
                                  "Copy the keyring to a file; needs no secret", arguments, backup);
  copying.add_option("FILE", arguments->file, "A file that does not exist yet")->required();
  copying.footer(
      "The file and a passphrase of today together open the volume, also later.\n"
      "Examples:\n"
      "  nacre key backup /srv/vault vault.keyring");
  arguments = std::make_shared<KeyBackupArguments>();
  CLI::App& command =
      add_command(key, action, "restore", "Put a copy of the keyring back", arguments, restore);
  command.add_option("FILE", arguments->file, "The file that 'nacre key backup' wrote")->required();
  command.add_flag("--force", arguments->force,
                   "Restore although the volume's keyring is sound and no longer has the secret");
  command.footer(
      "Examples:\n"
      "  nacre key restore /srv/vault vault.keyring");
}

}  // namespace nacre::tools
