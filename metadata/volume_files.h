// SPDX-License-Identifier: Apache-2.0
// A volume directory as a whole: made, recognised, opened up to its keys.
//
// A volume is a directory with a superblock. It is made in two steps, so that a crash in between
// leaves something that no mount takes for a volume and mkfs knows as its own:
//   1. create_volume_files() or begin_volume_files(): the marker "mkfs-unfinished", folders db/ and
//   segments/, the keyring
//   2. the caller makes the database
//   3. complete_volume_files(): both superblocks, then the marker goes
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
  empty,       // nothing, or only the lock file and lost+found
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

// Draws the volume id and all keys. Clears what an interrupted mkfs left. exists: it is a volume;
// not_empty: other files, or a damaged volume; invalid_argument: parameters or recipients.
Result<NewVolume> create_volume_files(BackingDirectory& directory,
                                      const VolumeParameters& parameters,
                                      std::span<const NewRecipient> recipients);
// The parts of that: whether a volume can be made there (exists, not_empty), and step 1 for a
// volume whose id and keys there are already.
Result<void> check_volume_place(BackingDirectory& directory);
Result<void> begin_volume_files(BackingDirectory& directory, const NewVolume& volume);
// Makes it a volume.
Result<void> complete_volume_files(BackingDirectory& directory, const NewVolume& volume);

struct VolumeKeys {
  Superblock superblock;
  Keyring keyring;
  std::shared_ptr<KeyTree> keys;
  std::vector<Error> warnings;  // for the log of a mount and for fsck: about damaged copies
  std::shared_ptr<const KeyringAccess> access;  // for changing the keyring; dropped by all others
  bool keyring_is_torn = false;                 // an update of it was interrupted, see FoundKeyring
};
// Reads and authenticates superblock and keyring. Everything in the result may be believed but for
// its freshness: the caller compares keyring.generation with the database (rolled_back), and
// keys->fingerprint() with known_volumes. Writers ask check_writable(superblock).
// not_found: not a volume, and why; wrong_key; corrupt; tampered; unsupported.
Result<VolumeKeys> open_volume_keys(BackingDirectory& directory, const VolumeSecret& secret);

}  // namespace nacre::metadata
