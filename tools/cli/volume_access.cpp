// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/volume_access.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "fs/control/mount_table.h"
#include "tools/cli/known_volumes.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_prompt.h"

namespace nacre::tools {

namespace {

constexpr std::size_t identity_size_bytes_max = 64u << 10;

KnownVolume known_volume_of(const VolumePlace& place, const metadata::KeyTree& keys) {
  return {.path = place.path,
          .volume_id = hex(keys.volume_id()),
          .fingerprint = fingerprint_of(keys),
          .is_format_2 = keys.current_epoch().format != metadata::EpochFormat::one};
}

// If the list itself cannot be used, the user still gets at the files. If the volume is not the
// known one, it is refused.
Result<KnownVolumes::Acquaintance> check_known(const KnownVolume& volume, bool is_named = false) {
  KnownVolumes::Acquaintance known;
  const auto lists = KnownVolumes::of_user();
  if (!lists) return known;
  for (const auto& list : *lists) {
    const auto found = list.check(volume, is_named);
    if (!found && found.error().code == ErrorCode::not_permitted) {
      return tl::unexpected(found.error());
    }
    if (!found) continue;
    known.is_known = known.is_known || found->is_known;
    known.has_another_key = known.has_another_key || found->has_another_key;
    known.was_format_2 = known.was_format_2 || found->was_format_2;
    if (known.other_path.empty()) known.other_path = found->other_path;
  }
  return known;
}

// Notes the volume in the first list, and in those others that know something of that path.
Result<std::string> pin_in_lists(const KnownVolume& volume, bool is_copy) {
  NACRE_ASSIGN(const auto lists, KnownVolumes::of_user());
  for (const auto& list : lists) {
    const auto known = list.check(volume);
    const bool has_line = known ? known->is_known : known.error().code == ErrorCode::not_permitted;
    if (&list != &lists.front() && !has_line) continue;
    NACRE_TRY(is_copy ? list.pin_copy(volume) : list.pin(volume));
  }
  return lists.front().file();
}

// Notes that the volume is of format 2, in each list that knows its path and fingerprint in format
// 1. If a list cannot be written, a later opening notes it.
void note_format_2(const KnownVolume& volume) {
  const auto lists = KnownVolumes::of_user();
  if (!lists) return;
  for (const auto& list : *lists) {
    const auto known = list.check(volume);
    if (!known || !known->is_known || known->was_format_2 || !known->other_path.empty()) continue;
    static_cast<void>(list.note_format_2(volume));
  }
}

void pin(const KnownVolume& volume, std::string_view note, bool is_copy = false) {
  const auto file = pin_in_lists(volume, is_copy);
  if (!file) {
    print_warning(
        fmt::format("the volume's fingerprint cannot be remembered ({}): if another volume is put "
                    "in its place later, this machine will not notice",
                    file.error().message));
  } else if (!note.empty()) {
    print_note(
        fmt::format("{} Its fingerprint is {}, remembered in {}", note, volume.fingerprint, *file));
  }
}

// The passphrase's recipient has no MAC or seal, and this machine does not know the volume. So an
// attacker who has seen that recipient could have made the whole volume.
std::string unknown_volume(const VolumePlace& place) {
  return fmt::format(
      "the key of {} was changed since this passphrase opened it last, and this machine does not "
      "know the volume: nothing shows that it is yours, and not another one that an attacker put "
      "in its place to see what you write. Ask the person who changed the key for the fingerprint",
      place.path);
}

// The keyring is that of a rotation from the key that this machine knows. So every present and
// former recipient could have made it: all of them had that key.
std::string unvouched_rotation(const VolumePlace& place) {
  return fmt::format(
      "the keys of {} are being rotated, and your secret does not show that the person who rotates "
      "them may still open the volume: a recipient that was removed could do so, to see what you "
      "write. Ask the person who changed the key for the fingerprint",
      place.path);
}

// Asks the user at the terminal, since nothing else can decide.
Result<> ask_to_confirm(const VolumePlace& place, const std::string& what,
                        const std::string& fingerprint) {
  if (!can_prompt()) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{}, and name it: --fingerprint HEX (mount option fingerprint=HEX). "
                            "The fingerprint of what is there is {}",
                            what, fingerprint));
  }
  print_warning(what);
  NACRE_ASSIGN(const bool confirmed,
               prompt_yes(fmt::format("The fingerprint of what is there is {}\nIs that the one you "
                                      "were told? (yes or no): ",
                                      fingerprint)));
  if (confirmed) return {};
  return fail(ErrorCode::not_permitted,
              fmt::format("{} is not opened, since its fingerprint was not confirmed", place.path));
}

Result<> check_named(const VolumePlace& place, const metadata::KeyTree& keys,
                     const std::string& named) {
  if (named.empty() || named == fingerprint_of(keys)) return {};
  const auto previous = keys.previous_fingerprint();
  return fail(ErrorCode::not_permitted,
              fmt::format("{} is not the volume that --fingerprint names: its fingerprint is {}, "
                          "not {}{}",
                          place.path, fingerprint_of(keys), named,
                          previous && hex(*previous) == named
                              ? ". That was its fingerprint before the rotation of its keys that "
                                "is under way"
                              : ""));
}

// Whether this machine knows the volume by the key of that fingerprint, and how.
KnownVolumes::Acquaintance known_by(const VolumePlace& place, const metadata::KeyTree& keys,
                                    const std::optional<engine::Sha256Digest>& fingerprint) {
  if (!fingerprint) return {};
  const auto known = check_known(
      {.path = place.path, .volume_id = hex(keys.volume_id()), .fingerprint = hex(*fingerprint)});
  return known.value_or(KnownVolumes::Acquaintance{});
}

// A volume never goes back to format 1, where the MAC of a passphrase does not say which key comes
// before its own.
Result<> check_not_of_older_format(const VolumePlace& place, const metadata::KeyTree& keys,
                                   const KnownVolumes::Acquaintance& known) {
  if (!known.was_format_2 || keys.current_epoch().format != metadata::EpochFormat::one) return {};
  return fail(
      ErrorCode::tampered,
      fmt::format("{} was of format 2 when this machine used it, and its keyring now is one "
                  "of format 1: a person who had an earlier key of the volume can have "
                  "made it",
                  place.path));
}

// The volume has another key than the one by which this machine knows it. That is its successor if
// the passphrase says so. A keyring that holds the older key shows only that its maker had that,
// and so may have been removed since: then a person must say so.
Result<> follow_rotation(const VolumePlace& place, const metadata::KeyTree& keys,
                         const metadata::KeyringAccess& access, bool is_named,
                         const Error& refusal) {
  const auto vouched = known_by(place, keys, access.follows);
  NACRE_TRY(check_not_of_older_format(place, keys, vouched));
  if (!vouched.is_known) {
    const auto previous = known_by(place, keys, keys.previous_fingerprint());
    if (!previous.is_known) return tl::unexpected(refusal);
    NACRE_TRY(check_not_of_older_format(place, keys, previous));
    if (!is_named) {
      NACRE_TRY(ask_to_confirm(place, unvouched_rotation(place), fingerprint_of(keys)));
    }
  }
  pin(known_volume_of(place, keys),
      fmt::format("The keys of {} {}.", place.path,
                  keys.is_rotating() ? "are being rotated" : "were rotated"));
  return {};
}

Result<metadata::VolumeSecret> read_identity(const SecretOptions& options) {
  if (engine::is_key_uri(options.identity) && ::access(options.identity.c_str(), F_OK) != 0) {
    NACRE_ASSIGN(auto key, engine::RsaPrivateKey::from_uri(options.identity, [&] {
                   return read_passphrase(options,
                                          {.prompt = fmt::format("PIN of {}", options.identity)});
                 }));
    return metadata::VolumeSecret(std::move(key));
  }
  NACRE_ASSIGN(const auto pem, read_secret_file(options.identity, identity_size_bytes_max));
  const auto text = as_text(pem.view());
  const bool is_encrypted = text.find("ENCRYPTED") != std::string_view::npos;
  SecretBytes passphrase;
  if (is_encrypted) {
    NACRE_ASSIGN(
        passphrase,
        read_passphrase(options, {.prompt = fmt::format("Passphrase of {}", options.identity)}));
  }
  auto key = engine::RsaPrivateKey::from_pem(text, passphrase.view());
  if (!key) return add_context(key.error(), options.identity);
  return metadata::VolumeSecret(std::move(*key));
}

// Files that were made on Windows end their lines in CR LF, and only the LF is ignored.
Error with_hint_at_line_end(Error error, const metadata::VolumeSecret& secret) {
  const auto* passphrase = std::get_if<SecretBytes>(&secret);
  if (error.code == ErrorCode::wrong_key && passphrase != nullptr && !passphrase->view().empty() &&
      passphrase->view().back() == '\r') {
    error.message +=
        ". The passphrase ends in a carriage return (CR), as in files with the line ends of "
        "Windows: "
        "if that is no part of it, take it out of the file";
  }
  return error;
}

}  // namespace

std::string fingerprint_of(const metadata::KeyTree& keys) {
  return hex(keys.fingerprint());
}

namespace {

// Says what helps next.
Error with_next_step(Error error, const std::string& path) {
  struct stat status {};
  if (error.code == ErrorCode::not_directory) {
    error.message =
        fmt::format("{} is not a directory: a volume is one, not a file or a device", path);
  } else if (error.code == ErrorCode::permission && ::stat(path.c_str(), &status) == 0 &&
             status.st_uid != ::geteuid()) {
    error.message += fmt::format(
        ": it belongs to user {}. Give the command as that user, or let root give the volume to "
        "you "
        "(chown -R)",
        status.st_uid);
  }
  return error;
}

}  // namespace

Result<VolumePlace> open_place(const std::string& path) {
  auto opened = metadata::open_posix_directory(path);
  if (!opened) return tl::unexpected(with_next_step(std::move(opened).error(), path));
  auto directory = std::move(*opened);
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) {
    return fail(ErrorCode::io, fmt::format("{}: its full path cannot be found", path));
  }
  return VolumePlace{.path = resolved, .directory = std::move(directory)};
}

namespace {

// A mounted volume's files are no volume. The user means the folder behind them.
Result<> check_not_mount_point(const std::string& path) {
  const auto mount = fs::find_nacre_mount(path);
  if (!mount) return {};
  return fail(ErrorCode::not_found,
              fmt::format("{} is where the volume {} is mounted, not the volume: give {}", path,
                          mount->source, mount->source));
}

// if_none: the message for a directory that is no volume.
Result<VolumePlace> find_volume(const std::string& path, const std::string& if_none) {
  NACRE_ASSIGN(auto place, open_place(path));
  NACRE_ASSIGN(const auto state, metadata::inspect_directory(*place.directory));
  switch (state) {
    case metadata::DirectoryState::volume:
      break;
    case metadata::DirectoryState::unfinished:
      return fail(
          ErrorCode::not_found,
          fmt::format(
              "{} is not a volume yet: mkfs.nacre, or a salvage, was interrupted there; run it "
              "again",
              path));
    case metadata::DirectoryState::damaged:
      return fail(ErrorCode::missing,
                  fmt::format("{}: both copies of the superblock are missing; put one back from a "
                              "backup",
                              path));
    default:
      NACRE_TRY(check_not_mount_point(path));
      return fail(ErrorCode::not_found, if_none);
  }
  NACRE_ASSIGN(const auto found, metadata::find_superblock(*place.directory));
  NACRE_TRY(check_known({.path = place.path,
                         .volume_id = hex(found.superblock.claims.volume_id),
                         .fingerprint = {}}));
  return place;
}

}  // namespace

Result<VolumePlace> find_volume(const std::string& path) {
  return find_volume(path, fmt::format("{} is not a Nacre volume: it has no superblock", path));
}

Result<VolumePlace> find_unmounted_volume(const std::string& path) {
  return find_volume(path, fmt::format("{} is neither a volume nor where one is mounted: mount one "
                                       "there first, or give a volume's directory",
                                       path));
}

Result<metadata::VolumeSecret> read_secret(const SecretOptions& options,
                                           const std::string& volume) {
  if (!options.identity.empty()) return read_identity(options);
  NACRE_ASSIGN(auto passphrase,
               read_passphrase(options, {.prompt = fmt::format("Passphrase for {}", volume)}));
  return metadata::VolumeSecret(std::move(passphrase));
}

Result<metadata::VolumeKeys> unlock_quietly(const VolumePlace& place,
                                            const metadata::VolumeSecret& secret,
                                            const SecretOptions& options) {
  if (std::holds_alternative<SecretBytes>(secret)) {
    // The error is reported below.
    if (const auto found = metadata::find_keyring(*place.directory)) {
      note_kdf_cost(found->keyring.claims);
    }
  }
  auto opened = metadata::open_volume_keys(*place.directory, secret);
  if (!opened) return tl::unexpected(with_hint_at_line_end(std::move(opened).error(), secret));
  metadata::VolumeKeys volume = std::move(*opened);
  NACRE_TRY(recognise(place, *volume.keys, *volume.access, options));
  return volume;
}

Result<> recognise(const VolumePlace& place, const metadata::KeyTree& keys,
                   const metadata::KeyringAccess& access, const SecretOptions& options) {
  NACRE_TRY(check_named(place, keys, options.fingerprint));
  const auto found = known_volume_of(place, keys);
  const bool is_named = !options.fingerprint.empty();
  const auto known = check_known(found, is_named);
  if (!known) return follow_rotation(place, keys, access, is_named, known.error());
  if (!known->other_path.empty()) {
    pin(found, fmt::format("{} is the volume that is known as {}.", place.path, known->other_path));
  }
  if (known->is_known) {
    if (found.is_format_2 && !known->was_format_2) note_format_2(found);
    return {};
  }
  if (access.is_unconfirmed && !is_named) {
    NACRE_TRY(ask_to_confirm(place, unknown_volume(place), found.fingerprint));
  }
  pin(found, fmt::format("{} is used for the first time.", place.path), known->has_another_key);
  return {};
}

Result<metadata::VolumeKeys> unlock(const VolumePlace& place, const metadata::VolumeSecret& secret,
                                    const SecretOptions& options) {
  NACRE_ASSIGN(auto volume, unlock_quietly(place, secret, options));
  for (const auto& warning : volume.warnings)
    print_warning(warning.message);
  warn_of_legacy_cipher(place, volume.superblock, volume.keyring);
  return volume;
}

std::string legacy_cipher_warning(const VolumePlace& place, const metadata::Superblock& superblock,
                                  const metadata::Keyring& keyring) {
  // New records get the superblock's suite; existing ones have those of their epochs.
  std::set<engine::CipherSuite> suites = {superblock.cipher};
  for (const auto& epoch : keyring.epochs)
    suites.insert(epoch.suite);
  std::string names;
  for (const auto suite : suites) {
    if (!engine::is_legacy(suite)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " and ", engine::to_string(suite));
  }
  if (names.empty()) return {};
  return fmt::format(
      "{} is sealed with {}, a legacy cipher that protects too little: copy what it holds to a "
      "volume with a cipher of today",
      place.path, names);
}

void warn_of_legacy_cipher(const VolumePlace& place, const metadata::Superblock& superblock,
                           const metadata::Keyring& keyring) {
  const auto warning = legacy_cipher_warning(place, superblock, keyring);
  if (!warning.empty()) print_warning(warning);
}

std::string older_format_warning(const VolumePlace& place, const metadata::Keyring& keyring) {
  if (keyring.epochs.front().format != metadata::EpochFormat::one) return {};
  if (keyring.epochs.size() > 1) {
    return fmt::format(
        "{} is being moved from format 1, and what is sealed anew last is still of it: this ends "
        "by itself while the volume is mounted for writing",
        place.path);
  }
  return fmt::format(
      "{} is of format 1, which does not protect from this: an attacker who can write to its "
      "directory and has a copy of it that was used on its own can put logs of that copy in place "
      "of its own; a recipient that was removed can forge data until the rotation of keys is done; "
      "with --padding padme, the lengths of names and of synced data show. 'nacre key rotate "
      "--format 2 {}' moves it to format 2",
      place.path, place.path);
}

void remember_new_volume(const VolumePlace& place, const metadata::KeyTree& keys) {
  pin(known_volume_of(place, keys), {});
}

void remember_next_key(const VolumePlace& place, const metadata::KeyTree& keys,
                       const metadata::KeyTree& next) {
  KnownVolume volume = known_volume_of(place, keys);
  volume.next_fingerprint = fingerprint_of(next);
  const auto noted = [&]() -> Result<> {
    NACRE_ASSIGN(const auto lists, KnownVolumes::of_user());
    for (const auto& list : lists) {
      const auto known = list.check(volume);
      const bool has_line = known && known->is_known && known->other_path.empty();
      if (has_line || &list == &lists.front()) NACRE_TRY(list.note_next(volume));
    }
    return {};
  }();
  if (noted) return;
  print_warning(fmt::format(
      "the fingerprint of the volume's next key, {}, cannot be remembered ({}): if this machine "
      "crashes before the key is changed, it may refuse the volume until you name that fingerprint",
      volume.next_fingerprint, noted.error().message));
}

// If a list cannot be written, the line stays, and accepts the volume as well.
void settle_next_key(const VolumePlace& place, const metadata::KeyTree& keys) {
  const auto lists = KnownVolumes::of_user();
  if (!lists) return;
  for (const auto& list : *lists)
    static_cast<void>(list.settle_next(known_volume_of(place, keys)));
}

void remember_fingerprint(const VolumePlace& place, const std::string& volume_id,
                          const std::string& fingerprint, bool is_format_2) {
  pin({.path = place.path,
       .volume_id = volume_id,
       .fingerprint = fingerprint,
       .is_format_2 = is_format_2},
      {});
}

}  // namespace nacre::tools
