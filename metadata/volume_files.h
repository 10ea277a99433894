// SPDX-License-Identifier: Apache-2.0
// Makes a volume directory, recognises one, and opens one up to its keys.
//
// A volume is a directory with a superblock. It is made in steps, so that a crash in between leaves
// a directory that no mount takes for a volume, and that mkfs recognises as its own:
//   1. create_volume_files() or begin_volume_files() make the marker "mkfs-unfinished", the folders
//      db/ and segments/, and the keyring
//   2. the caller makes the database
//   3. complete_volume_files() writes both superblocks, then removes the marker
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/backing/backing.h"
#include "metadata/keys/keyring.h"
#include "metadata/keys/keys.h"
#include "metadata/superblock.h"

namespace nacre::metadata {

inline constexpr std::string_view database_folder = "db";
inline constexpr std::string_view segment_folder = "segments";
inline constexpr std::string_view lock_file = "lock";
inline constexpr std::string_view unfinished_file = "mkfs-unfinished";

enum class DirectoryState : std::uint8_t {
  empty,       // no file except the lock file and lost+found
  unfinished,  // mkfs or a salvage was interrupted here: both may clear the place and begin again
  volume,      // a superblock is there, in whatever state
  damaged,     // parts of a volume without a superblock: not to be touched
  foreign,     // other files
};
Result<DirectoryState> inspect_directory(BackingDirectory& directory);

struct VolumeParameters {
  std::string label;
  std::uint32_t chunk_size_bytes = chunk_size_bytes_default;
  engine::Padding padding = engine::Padding::none;
  engine::Codec codec = engine::Codec::lz77;
  int level = 0;
  engine::CipherSuite cipher = engine::CipherSuite::aes_256_gcm;
  EpochFormat format = EpochFormat::one;
};

struct NewVolume {
  Superblock superblock;
  Keyring keyring;
  std::shared_ptr<KeyTree> keys;
};

// Draws the volume id and all keys. Removes what an interrupted mkfs left. Errors: exists (it is a
// volume), not_empty (other files, or a damaged volume), invalid_argument (parameters or
// recipients).
Result<NewVolume> create_volume_files(BackingDirectory& directory,
                                      const VolumeParameters& parameters,
                                      std::span<const NewRecipient> recipients);
// The two parts of create_volume_files(): the check whether a volume can be made there (errors:
// exists, not_empty), and step 1 for a volume that has its id and keys already.
Result<void> check_volume_place(BackingDirectory& directory);
Result<void> begin_volume_files(BackingDirectory& directory, const NewVolume& volume);
// Does step 3, after which the directory is a volume.
Result<void> complete_volume_files(BackingDirectory& directory, const NewVolume& volume);

struct VolumeKeys {
  Superblock superblock;
  Keyring keyring;
  std::shared_ptr<KeyTree> keys;
  std::vector<Error> warnings;  // about damaged copies: for the log of a mount and for fsck
  std::shared_ptr<const KeyringAccess> access;  // for changing the keyring; other callers drop it
  bool keyring_is_torn = false;                 // whether an update was interrupted (FoundKeyring)
};
// Reads and authenticates superblock and keyring. Everything in the result is genuine, but it may
// be old, or of another volume. So the caller compares keyring.generation with the database
// (rolled_back), and keys->fingerprint() with known_volumes. Callers that write also call
// check_writable(superblock). Errors: not_found (not a volume, and why), wrong_key, corrupt,
// tampered, unsupported.
Result<VolumeKeys> open_volume_keys(BackingDirectory& directory, const VolumeSecret& secret);
// The same with the volume key of VolumeKeys::access in another process. The result has no access.
Result<VolumeKeys> open_volume_keys_by_volume_key(BackingDirectory& directory, ByteView volume_key);

}  // namespace nacre::metadata
