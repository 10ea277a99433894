// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/volume_age_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "metadata/text/rfc3339.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_prompt.h"

namespace nacre::tools {

namespace {

Result<Witness> witness_of(const metadata::VolumeKeys& volume) {
  return Witness::of_volume(hex(volume.keys->volume_id()));
}

Sight sight_now(const metadata::VolumeKeys& volume, std::uint64_t keyring_generation,
                const metadata::VolumeAge& age) {
  return {.time = metadata::rfc3339_now(),
          .age = age,
          .keyring_generation = keyring_generation,
          .superblock_generation = volume.superblock.generation};
}

void warn_of_witness(const Error& error) {
  print_warning(
      fmt::format("how far this volume had come cannot be remembered ({}): an older state "
                  "of it that is put in its place would not be noticed",
                  error.message));
}

Result<> ask_to_accept(const VolumePlace& place, const SeenCopy& seen, const Sight& found,
                       const std::string& older) {
  std::string what = fmt::format("{} is older than when this machine saw it last, at {}: {}. ",
                                 place.path, seen.last.time, older);
  if (const auto closing = closing_found(seen, found)) {
    what += fmt::format("It is as it was when it was closed at {}. ", closing->time);
  }
  const auto backup = place.directory->exists("backup");
  what += backup && *backup
              ? "It is, or was made from, a backup. Or somebody put an older state in its place"
              : "Somebody may have put an older state in its place, or cut its log. Or it is a "
                "copy, or one that you put back yourself";
  if (!can_prompt()) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{}. Only if you know about it: --accept-older-state (mount option "
                            "accept-older-state)",
                            what));
  }
  print_warning(what);
  NACRE_ASSIGN(const bool accepted, prompt_yes("Do you know about it? (yes or no): "));
  if (accepted) return {};
  return fail(ErrorCode::not_permitted,
              fmt::format("{} is not opened, since it is older than it was", place.path));
}

}  // namespace

Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const metadata::Database& database, const SecretOptions& options) {
  const auto witness = witness_of(volume);
  const auto seen = witness ? witness->find(place.path) : tl::unexpected(witness.error());
  if (!seen) warn_of_witness(seen.error());
  if (!seen || !*seen) return {};
  const SeenCopy& copy = **seen;
  NACRE_ASSIGN(const auto next,
               database.get(metadata::Table::system, metadata::system_key_next_session));
  if (!next) return {};  // the code that reads the rows reports the error
  NACRE_ASSIGN(const std::uint64_t next_session, metadata::decode_u64(*next));
  // If only the keyring was put back, the row that remembers its generation tells.
  NACRE_ASSIGN(const auto keyring_row,
               database.get(metadata::Table::system, metadata::system_key_keyring));
  const std::uint64_t keyring_of_rows =
      keyring_row ? metadata::decode_u64(*keyring_row).value_or(0) : 0;
  Sight found = sight_now(volume, std::max(volume.keyring.generation, keyring_of_rows),
                          {.session_count = next_session == 0 ? 0 : next_session - 1,
                           .change_count = database.durable_change_count()});
  const bool has_session = copy.last.age.session_count != 0;
  bool knows_session = true;
  if (has_session) {
    NACRE_ASSIGN(knows_session, metadata::has_session(database, copy.last.age.session));
  }
  const std::string older = what_is_older(copy.last, found, knows_session);
  if (older.empty()) return {};
  // A backup in its own place is naturally older. In the volume's place it needs a confirmation.
  if (copy.path != place.path && place.directory->exists("backup").value_or(false)) {
    print_note(fmt::format("{} is a backup: it is older than {} was at {}: {}", place.path,
                           copy.path, copy.last.time, older));
    return {};
  }
  NACRE_ASSIGN(found.age, metadata::read_volume_age(database));
  if (!options.accept_older_state) NACRE_TRY(ask_to_accept(place, copy, found, older));
  if (const auto accepted = witness->accept(place.path, found); !accepted) {
    warn_of_witness(accepted.error());
  }
  return {};
}

Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const SecretOptions& options) {
  const auto database = metadata::Database::open(place.directory, volume.keys, {.read_only = true});
  return database ? check_age(place, volume, **database, options) : Result<>();
}

Result<> check_age_beforehand(const VolumePlace& place, const metadata::VolumeKeys& volume,
                              const SecretOptions& options) {
  const auto witness = witness_of(volume);
  const auto seen = witness ? witness->find(place.path) : tl::unexpected(witness.error());
  if (!seen || !*seen) return {};
  const bool is_backup = place.directory->exists("backup").value_or(false);
  if ((*seen)->path == place.path && !is_backup) return {};
  return check_age(place, volume, options);
}

void note_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
              std::uint64_t keyring_generation, const metadata::VolumeAge& age,
              Witness::Moment moment) {
  const auto witness = witness_of(volume);
  const auto noted =
      witness ? witness->note(place.path, sight_now(volume, keyring_generation, age), moment)
              : tl::unexpected(witness.error());
  if (!noted && moment == Witness::Moment::opened) warn_of_witness(noted.error());
}

void note_made_age(const VolumePlace& place, const metadata::VolumeKeys& volume) {
  const auto noted = [&]() -> Result<> {
    NACRE_ASSIGN(const auto database,
                 metadata::Database::open(place.directory, volume.keys, {.read_only = true}));
    NACRE_ASSIGN(const auto age, metadata::read_volume_age(*database));
    NACRE_ASSIGN(const auto witness, witness_of(volume));
    NACRE_ASSIGN(const auto superblock, metadata::find_superblock(*place.directory));
    NACRE_ASSIGN(const auto keyring, metadata::find_keyring(*place.directory));
    return witness.accept(place.path,
                          {.time = metadata::rfc3339_now(),
                           .age = age,
                           .keyring_generation = keyring.keyring.claims.generation,
                           .superblock_generation = superblock.superblock.claims.generation});
  }();
  if (!noted) warn_of_witness(noted.error());
}

}  // namespace nacre::tools
