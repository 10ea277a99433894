// SPDX-License-Identifier: Apache-2.0
#include "metadata/volume_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "metadata/backing/two_copies.h"
#include "metadata/text/document.h"
#include "metadata/text/rfc3339.h"

namespace nacre::metadata {

namespace {

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Files that the file system itself leaves, or that are made before all others.
bool is_harmless(std::string_view name) {
  return name == lock_file || name == "lost+found";
}

bool is_part_of_a_volume(std::string_view name) {
  return name == keyring_file || name == copy_name(keyring_file) || name == database_folder ||
         name == segment_folder;
}

Result<void> check(const VolumeParameters& parameters) {
  NACRE_TRY(check_label(parameters.label));
  if (!std::has_single_bit(parameters.chunk_size_bytes) ||
      parameters.chunk_size_bytes < chunk_size_bytes_min ||
      parameters.chunk_size_bytes > chunk_size_bytes_max) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("the chunk size {} is not a power of two between {} and {}",
                    parameters.chunk_size_bytes, chunk_size_bytes_min, chunk_size_bytes_max));
  }
  if (parameters.level < 0 || parameters.level > codec_level_max) {
    return fail(ErrorCode::invalid_argument, fmt::format("the level {} is not between 0 and {}",
                                                         parameters.level, codec_level_max));
  }
  if (!engine::codec_is_choosable(parameters.codec)) {
    return fail(ErrorCode::unsupported, fmt::format("this Nacre does not have the codec {}",
                                                    engine::to_string(parameters.codec)));
  }
  return {};
}

}  // namespace

Result<void> check_volume_place(BackingDirectory& directory) {
  NACRE_ASSIGN(const DirectoryState state, inspect_directory(directory));
  const auto refuse = [&](ErrorCode code, std::string_view why) {
    return fail(code, fmt::format("{}: {}", directory.description(), why));
  };
  switch (state) {
    case DirectoryState::empty:
    case DirectoryState::unfinished:
      return {};
    case DirectoryState::volume:
      return refuse(ErrorCode::exists, "already holds a volume; nothing was changed");
    case DirectoryState::damaged:
      return refuse(ErrorCode::not_empty,
                    "holds parts of a volume, but no superblock; nothing was changed: remove them "
                    "first if they are of no use");
    case DirectoryState::foreign:
      return refuse(ErrorCode::not_empty,
                    "holds other files; nothing was changed: give an empty directory");
  }
  return refuse(ErrorCode::invalid_argument, "unknown state");
}

namespace {

// Makes the marker and removes what an interrupted mkfs left next to it.
Result<void> begin(BackingDirectory& directory) {
  NACRE_TRY(replace_file(directory, unfinished_file, as_bytes("mkfs.nacre began here\n")));
  for (const std::string_view folder : {database_folder, segment_folder}) {
    NACRE_TRY(directory.make_directory(folder));
    NACRE_ASSIGN(const auto names, directory.list(folder));
    for (const std::string& name : names) {
      NACRE_TRY(directory.remove(fmt::format("{}/{}", folder, name)));
    }
    NACRE_TRY(directory.sync_directory(folder));
  }
  return directory.sync_directory("");
}

tl::unexpected<Error> not_a_volume(BackingDirectory& directory, DirectoryState state) {
  const auto refuse = [&](ErrorCode code, std::string_view why) {
    return fail(code, fmt::format("{}: {}", directory.description(), why));
  };
  switch (state) {
    case DirectoryState::unfinished:
      return refuse(ErrorCode::not_found,
                    "not a volume yet: mkfs.nacre, or a salvage, was interrupted here; run it "
                    "again. If there was a volume once, its superblocks were removed: put one back "
                    "from a backup instead");
    case DirectoryState::damaged:
      return refuse(ErrorCode::missing,
                    "both copies of the superblock are missing; put one back from a backup");
    default:
      return refuse(ErrorCode::not_found, "not a Nacre volume (there is no superblock)");
  }
}

// what_next says what to do if a file was tampered with in a way that only a holder of the volume
// key can mend.
tl::unexpected<Error> unopened(BackingDirectory& directory, Error error,
                               std::string_view what_next) {
  if (error.code == ErrorCode::tampered) error.message += fmt::format("; {}", what_next);
  return add_context(error, directory.description());
}

// An interrupted mkfs leaves no segment. So a marker next to segments was put there when
// superblocks were removed, or a salvage was interrupted, which begins anew by itself.
Result<void> check_no_segments(BackingDirectory& directory) {
  const auto names = directory.list(segment_folder);
  if (!names && names.error().code == ErrorCode::not_found) return {};
  if (!names) return tl::unexpected(names.error());
  if (names->empty()) return {};
  return fail(
      ErrorCode::not_empty,
      fmt::format("{}: holds segments, so a volume was here, or a salvage was interrupted; "
                  "nothing was changed: put a superblock back from a backup, run the salvage "
                  "again, or remove the segments if they are of no use",
                  directory.description()));
}

}  // namespace

Result<DirectoryState> inspect_directory(BackingDirectory& directory) {
  NACRE_ASSIGN(const auto names, directory.list(""));
  if (holds(names, superblock_file) || holds(names, copy_name(superblock_file))) {
    return DirectoryState::volume;
  }
  if (holds(names, unfinished_file)) return DirectoryState::unfinished;
  bool empty = true;
  bool damaged = false;
  for (const std::string& name : names) {
    // The marker's file under its first name: a crash came before any other file was made.
    if (is_harmless(name) || name == fmt::format("{}.new", unfinished_file)) continue;
    empty = false;
    damaged = damaged || is_part_of_a_volume(name);
  }
  if (empty) return DirectoryState::empty;
  return damaged ? DirectoryState::damaged : DirectoryState::foreign;
}

Result<NewVolume> create_volume_files(BackingDirectory& directory,
                                      const VolumeParameters& parameters,
                                      std::span<const NewRecipient> recipients) {
  NACRE_TRY(check(parameters));
  NACRE_TRY(check_volume_place(directory));
  NACRE_TRY(check_no_segments(directory));
  NewVolume volume;
  volume.superblock = {.label = parameters.label,
                       .created = rfc3339_now(),
                       .chunk_size_bytes = parameters.chunk_size_bytes,
                       .padding = parameters.padding,
                       .codec = parameters.codec,
                       .level = parameters.level,
                       .cipher = parameters.cipher,
                       .has_format_2 = parameters.format == EpochFormat::two};
  engine::random_bytes(volume.superblock.volume_id);
  NACRE_ASSIGN(NewKeyring made, create_keyring(volume.superblock.volume_id, parameters.cipher,
                                               recipients, parameters.format));
  volume.keyring = std::move(made.keyring);
  volume.keys = std::move(made.keys);

  NACRE_TRY(begin_volume_files(directory, volume));
  return volume;
}

Result<void> begin_volume_files(BackingDirectory& directory, const NewVolume& volume) {
  NACRE_TRY(check_volume_place(directory));
  NACRE_TRY(begin(directory));
  return save_keyring(directory, volume.keyring, *volume.keys);
}

Result<void> complete_volume_files(BackingDirectory& directory, const NewVolume& volume) {
  NACRE_TRY(save_superblock(directory, volume.superblock, *volume.keys));
  NACRE_TRY(directory.remove(unfinished_file));
  return directory.sync_directory("");
}

namespace {

// open_keys(keyring, volume) sets the volume's keys, and its access if there is one.
template <typename OpenKeys>
Result<VolumeKeys> open_volume_keys_with(BackingDirectory& directory, OpenKeys open_keys) {
  NACRE_ASSIGN(const DirectoryState state, inspect_directory(directory));
  if (state != DirectoryState::volume) return not_a_volume(directory, state);
  NACRE_ASSIGN(FoundSuperblock superblock, find_superblock(directory));
  NACRE_ASSIGN(FoundKeyring keyring, find_keyring(directory));

  VolumeKeys volume;
  if (const Result<void> opened = open_keys(keyring.keyring, volume); !opened) {
    return unopened(directory, opened.error(),
                    "'nacre key restore' puts a keyring back that was backed up");
  }
  volume.keyring_is_torn = keyring.is_torn;
  auto verified = verify_superblock(superblock.superblock, *volume.keys);
  if (!verified) {
    return unopened(directory, verified.error(), "put the true one back from a backup");
  }
  volume.superblock = std::move(*verified);
  volume.keyring = std::move(keyring.keyring.claims);
  if (volume.keyring.epochs.back().format == EpochFormat::two && !volume.superblock.has_format_2) {
    return unopened(directory,
                    Error{ErrorCode::tampered,
                          "the superblock does not say of which format the volume is, so "
                          "an older one was put in its place"},
                    "put the true one back from a backup");
  }
  volume.warnings = std::move(superblock.warnings);
  for (Error& warning : keyring.warnings)
    volume.warnings.push_back(std::move(warning));
  return volume;
}

}  // namespace

Result<VolumeKeys> open_volume_keys(BackingDirectory& directory, const VolumeSecret& secret) {
  return open_volume_keys_with(
      directory, [&](const Unverified<Keyring>& keyring, VolumeKeys& volume) -> Result<void> {
        NACRE_ASSIGN(auto opened, open_keyring(keyring, secret));
        volume.keys = std::move(opened.keys);
        volume.access = std::make_shared<const KeyringAccess>(std::move(opened.access));
        return {};
      });
}

Result<VolumeKeys> open_volume_keys_by_volume_key(BackingDirectory& directory,
                                                  ByteView volume_key) {
  return open_volume_keys_with(
      directory, [&](const Unverified<Keyring>& keyring, VolumeKeys& volume) -> Result<void> {
        NACRE_ASSIGN(volume.keys, open_keyring_by_volume_key(keyring, volume_key));
        return {};
      });
}

}  // namespace nacre::metadata
