// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/volume_age_check.h"

#include <algorithm>
#include <utility>
#include <vector>

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

// A memory or witness that saw the volume in a newer state, and the numbers in which the volume is
// older now.
struct Elder {
  std::string who;
  const SeenCopy* seen;
  std::string older;
};

std::string in_words(const VolumePlace& place, const std::vector<Elder>& elders,
                     const Sight& found) {
  std::string what;
  for (const Elder& one : elders) {
    what += &one == &elders.front()
                ? fmt::format("{} is older than when {} saw it last, at {}: {}. ", place.path,
                              one.who, one.seen->last.time, one.older)
                : fmt::format("And {} saw it last at {}: {}. ", one.who, one.seen->last.time,
                              one.older);
  }
  for (const Elder& one : elders) {
    if (const auto closing = closing_found(*one.seen, found)) {
      what += fmt::format("It is as it was when it was closed at {}. ", closing->time);
      break;
    }
  }
  return what;
}

Result<> ask_to_accept(const VolumePlace& place, const std::vector<Elder>& elders,
                       const Sight& found) {
  std::string what = in_words(place, elders, found);
  const auto backup = place.directory->exists("backup");
  what += backup && *backup ? "Either this is a backup, or was made from one. Or an attacker put "
                              "an older state in its place"
                            : "An attacker may have put an older state in its place, or cut its "
                              "log. Or this is a copy, or a state that you put back yourself";
  if (!can_prompt()) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{}. Only if you know about it: --accept-older-state (mount option "
                            "accept-older-state)",
                            what));
  }
  print_warning(what);
  NACRE_ASSIGN(const bool accepted, prompt_yes("Do you know about it? (yes or no): "));
  if (accepted) return {};
  return fail(
      ErrorCode::not_permitted,
      fmt::format("{} is not opened, because it is older than when it was last seen", place.path));
}

Result<Sight> sight_found(const metadata::VolumeKeys& volume, const metadata::Database& database,
                          std::uint64_t next_session) {
  // If only the keyring was put back, the row that remembers its generation tells.
  NACRE_ASSIGN(const auto keyring_row,
               database.get(metadata::Table::system, metadata::system_key_keyring));
  const std::uint64_t keyring_of_rows =
      keyring_row ? metadata::decode_u64(*keyring_row).value_or(0) : 0;
  return sight_now(volume, std::max(volume.keyring.generation, keyring_of_rows),
                   {.session_count = next_session == 0 ? 0 : next_session - 1,
                    .change_count = database.durable_change_count()});
}

Result<std::string> older_than(const SeenCopy& seen, const Sight& found,
                               const metadata::Database& database) {
  bool knows_session = true;
  if (seen.last.age.session_count != 0) {
    NACRE_ASSIGN(knows_session, metadata::has_session(database, seen.last.age.session));
  }
  return what_is_older(seen.last, found, knows_session);
}

// What this machine remembers of the volume. If the memory cannot be used, the user gets a warning,
// and the volume is opened all the same.
std::optional<SeenCopy> remembered(const Result<Witness>& witness, const VolumePlace& place) {
  auto seen = witness ? witness->find(place.path) : tl::unexpected(witness.error());
  if (seen) return std::move(*seen);
  warn_of_witness(seen.error());
  return std::nullopt;
}

}  // namespace

Result<std::optional<OutsideWitness>> open_outside_witness(
    const OutsideWitnessOptions& options, const metadata::VolumeKeys& volume,
    const std::function<void(std::string_view)>& say) {
  if (!options.is_named()) return std::nullopt;
  auto witness = OutsideWitness::read(options, hex(volume.keys->volume_id()));
  if (!witness && !options.may_fail) {
    return fail(
        witness.error().code,
        fmt::format(
            "{}. Without the witness, an older state could be taken for the newest. To open the "
            "volume all the same: --witness-may-fail (mount option witness-may-fail)",
            witness.error().message));
  }
  if (!witness) {
    say(
        fmt::format("{}. So the volume was compared only with what this machine remembers of it, "
                    "and nothing is written to the witness until the volume is mounted again",
                    witness.error().message));
    return std::nullopt;
  }
  if (!witness->seen()) {
    say(fmt::format(
        "{} has seen nothing of this volume yet: the present state is the first that it keeps",
        witness->name()));
  }
  return std::optional(std::move(*witness));
}

Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const metadata::Database& database, const SecretOptions& options,
                   OutsideWitness* outside) {
  const auto witness = witness_of(volume);
  const auto seen_here = remembered(witness, place);
  const SeenCopy* seen_outside =
      outside != nullptr && outside->seen() ? &*outside->seen() : nullptr;
  if (!seen_here && seen_outside == nullptr) return {};
  NACRE_ASSIGN(const auto next,
               database.get(metadata::Table::system, metadata::system_key_next_session));
  if (!next) return {};  // the code that reads the rows reports the error
  NACRE_ASSIGN(const std::uint64_t next_session, metadata::decode_u64(*next));
  NACRE_ASSIGN(Sight found, sight_found(volume, database, next_session));
  std::vector<Elder> elders;
  bool is_older_here = false;
  if (seen_here) {
    NACRE_ASSIGN(auto older, older_than(*seen_here, found, database));
    // A backup in its own place is naturally older. In the volume's place it needs a confirmation.
    if (!older.empty() && seen_here->path != place.path &&
        place.directory->exists("backup").value_or(false)) {
      print_note(fmt::format("{} is a backup: it is older than {} was at {}: {}", place.path,
                             seen_here->path, seen_here->last.time, older));
    } else if (!older.empty()) {
      is_older_here = true;
      elders.push_back({"this machine", &*seen_here, std::move(older)});
    }
  }
  if (seen_outside != nullptr) {
    NACRE_ASSIGN(auto older, older_than(*seen_outside, found, database));
    if (!older.empty()) elders.push_back({outside->name(), seen_outside, std::move(older)});
  }
  if (elders.empty()) return {};
  NACRE_ASSIGN(found.age, metadata::read_volume_age(database));
  if (!options.accept_older_state) NACRE_TRY(ask_to_accept(place, elders, found));
  const bool is_older_outside = elders.back().seen == seen_outside;
  if (is_older_outside) outside->accept();
  if (!is_older_here) return {};
  if (const auto accepted = witness->accept(place.path, found); !accepted) {
    warn_of_witness(accepted.error());
  }
  return {};
}

Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const SecretOptions& options, OutsideWitness* outside) {
  const auto database = metadata::Database::open(place.directory, volume.keys, {.read_only = true});
  return database ? check_age(place, volume, **database, options, outside) : Result<>();
}

Result<> check_age_beforehand(const VolumePlace& place, const metadata::VolumeKeys& volume,
                              const SecretOptions& options, OutsideWitness* outside) {
  const auto witness = witness_of(volume);
  const auto seen = witness ? witness->find(place.path) : tl::unexpected(witness.error());
  const bool was_seen_here = seen && *seen;
  if (!was_seen_here && outside == nullptr) return {};
  const bool is_backup = place.directory->exists("backup").value_or(false);
  if (was_seen_here && (*seen)->path == place.path && !is_backup) return {};
  return check_age(place, volume, options, outside);
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

Result<> note_age_outside(OutsideWitness& outside, const metadata::VolumeKeys& volume,
                          std::uint64_t keyring_generation, const metadata::VolumeAge& age,
                          Witness::Moment moment) {
  return outside.note(sight_now(volume, keyring_generation, age), moment);
}

void note_made_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   OutsideWitness* outside) {
  const auto noted = [&]() -> Result<> {
    NACRE_ASSIGN(const auto database,
                 metadata::Database::open(place.directory, volume.keys, {.read_only = true}));
    NACRE_ASSIGN(const auto age, metadata::read_volume_age(*database));
    NACRE_ASSIGN(const auto witness, witness_of(volume));
    NACRE_ASSIGN(const auto superblock, metadata::find_superblock(*place.directory));
    NACRE_ASSIGN(const auto keyring, metadata::find_keyring(*place.directory));
    const Sight made{.time = metadata::rfc3339_now(),
                     .age = age,
                     .keyring_generation = keyring.keyring.claims.generation,
                     .superblock_generation = superblock.superblock.claims.generation};
    NACRE_TRY(witness.accept(place.path, made));
    if (outside == nullptr) return {};
    outside->accept();
    return outside->note(made, Witness::Moment::closed);
  }();
  if (!noted) warn_of_witness(noted.error());
}

}  // namespace nacre::tools
