// SPDX-License-Identifier: Apache-2.0
// The open volume's key tree: everything below the volume key. docs/SECURITY.md, "Key tree".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/record/record.h"

namespace nacre::metadata {

// How what is sealed under an epoch is sealed. docs/FORMAT.md, "Format 2". Values are on-disk
// numbers.
enum class EpochFormat : std::uint8_t { one = 1, two = 2 };
// Rotations move a volume of an older format to this one, and a mount says what the older one does
// not protect. As long as format 2 is a draft, only whoever asks for it gets either.
inline constexpr EpochFormat settled_format = EpochFormat::one;

struct EpochKey {
  std::uint32_t number = 0;
  engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm;
  SecretBytes key;
  EpochFormat format = EpochFormat::one;
};

// A subkey of the volume key: HKDF-SHA256(volume key, salt = volume id, info = "nacre " + purpose),
// 32 bytes. For making and opening a keyring; others ask the KeyTree.
SecretBytes derive_volume_subkey(const engine::VolumeId& volume_id, ByteView volume_key,
                                 std::string_view purpose);

// The tree:
//   volume key (32 random bytes, wrapped for each recipient)
//     +- "superblock mac", "keyring mac", "epoch wrap", "fingerprint": derive_volume_subkey()
//     +- wraps each epoch key (random; as long as its suite's key)
//          +- write session: HKDF(epoch key, salt, "nacre write session " + suite name)
//          +- database file: HKDF(epoch key, file salt, "nacre database file"), 32 bytes; of an
//             epoch of format 2 "nacre database file 2 " (of a padded file "nacre padded database
//             file 2 ") and the file's name
//
// While the volume is rotated there are an older epoch and the volume key before this one as well:
// what they made is still opened, and nothing new is made with them.
//
// Thread-safe; nothing it hands out points into it. Wiped when freed, and what a rotation is done
// with at once.
class KeyTree {
 public:
  // epochs: at least one, no number twice. previous_volume_key: empty but during a rotation.
  // previous_superblock: see there.
  KeyTree(engine::VolumeId volume_id, SecretBytes volume_key, std::vector<EpochKey> epochs,
          SecretBytes previous_volume_key = {},
          std::optional<engine::Sha256Digest> previous_superblock = {});

  const engine::VolumeId& volume_id() const { return volume_id_; }
  EpochKey current_epoch() const;  // the one with the highest number
  std::uint32_t current_epoch_number() const;
  std::vector<EpochKey> epochs() const;  // ascending
  SecretBytes volume_key() const;        // for wrapping it; others ask for subkeys
  // An older epoch or volume key is still there.
  bool is_rotating() const;

  // A rotation begins: the volume key becomes the previous one, the epoch (of a higher number) the
  // current one. In the same moment for everybody.
  void begin_rotation(SecretBytes volume_key, EpochKey epoch,
                      std::optional<engine::Sha256Digest> previous_superblock);
  // Forgets everything but the current epoch and the volume key. Whoever still has something of an
  // older epoch cannot open it any more.
  void end_rotation();

  // Key of the records of one write session; cached (bounded). corrupt when the epoch is unknown.
  struct SessionKey {
    engine::CipherSuite suite;
    SecretBytes key;
  };
  Result<std::shared_ptr<const SessionKey>> session_key(std::uint32_t epoch,
                                                        const engine::SessionSalt& salt) const;
  // An epoch before the current one, which is of format 2: nothing of it counts that was not there
  // when the current one began.
  bool is_superseded(std::uint32_t epoch) const;
  // Of an epoch; corrupt when it is unknown.
  Result<EpochFormat> epoch_format(std::uint32_t epoch) const;
  // Key of one file under RocksDB. Always aes-256-gcm, 32 bytes. name: the one that the file has
  // for good; format 1 leaves it out. A padded file (FileHeader::is_padded) has another key than
  // one that is not; in format 1 there are none.
  Result<SecretBytes> database_file_key(std::uint32_t epoch, ByteView file_salt,
                                        std::string_view name, bool is_padded = false) const;
  // Subkeys of the volume key: "superblock mac", "keyring mac", "epoch wrap", "fingerprint".
  SecretBytes volume_subkey(std::string_view purpose) const;
  // The same of the volume key before this one; none but during a rotation.
  std::optional<SecretBytes> previous_volume_subkey(std::string_view purpose) const;
  // The digest of the one superblock that counts under the volume key before this one
  // (superblock_digest()): whoever knew that key can still make others. None but during a rotation,
  // and where a program began it that kept none.
  std::optional<engine::Sha256Digest> previous_superblock() const;
  // What known_volumes pins: SHA-256 over volume id and a subkey. Not secret.
  engine::Sha256Digest fingerprint() const;
  // Of the volume key before this one: who knows the volume by it may take the new one for its
  // successor, since the keyring that says so was made by somebody who had both.
  std::optional<engine::Sha256Digest> previous_fingerprint() const;

 private:
  const engine::VolumeId volume_id_;
  mutable Mutex mutex_;
  SecretBytes volume_key_ NACRE_GUARDED_BY(mutex_);
  SecretBytes previous_volume_key_ NACRE_GUARDED_BY(mutex_);
  std::optional<engine::Sha256Digest> previous_superblock_ NACRE_GUARDED_BY(mutex_);
  std::vector<EpochKey> epochs_ NACRE_GUARDED_BY(mutex_);
  mutable std::map<std::pair<std::uint32_t, engine::SessionSalt>, std::shared_ptr<const SessionKey>>
      sessions_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::metadata
