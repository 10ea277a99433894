// SPDX-License-Identifier: Apache-2.0
// The key tree of an open volume: everything below the volume key. docs/SECURITY.md, "Key tree".
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

// The format in which data is sealed under an epoch. docs/FORMAT.md, "Format 2". The values are
// on-disk numbers.
enum class EpochFormat : std::uint8_t { one = 1, two = 2 };
// Rotations move a volume of an older format to this one, and a mount says what the older format
// does not protect. As long as format 2 is a draft, both happen only if the user asks for format 2.
inline constexpr EpochFormat settled_format = EpochFormat::one;

struct EpochKey {
  std::uint32_t number = 0;
  engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm;
  SecretBytes key;
  EpochFormat format = EpochFormat::one;
};

// A subkey of the volume key: HKDF-SHA256(volume key, salt = volume id, info = "nacre " + purpose),
// 32 bytes. For making and opening a keyring; other callers ask the KeyTree.
SecretBytes derive_volume_subkey(const engine::VolumeId& volume_id, ByteView volume_key,
                                 std::string_view purpose);

// The tree:
//   volume key (32 random bytes, wrapped for each recipient)
//     +- "superblock mac", "keyring mac", "epoch wrap", "previous volume key", "fingerprint" and
//     |    three of repairs (docs/FORMAT.md, "Keys"): derive_volume_subkey()
//     +- wraps each epoch key (random; as long as its suite's key)
//          +- write session: HKDF(epoch key, salt, "nacre write session " + suite name)
//          +- database file: HKDF(epoch key, file salt, "nacre database file"), 32 bytes; of an
//             epoch of format 2 "nacre database file 2 " (of a padded file "nacre padded database
//             file 2 ") and the file's name
//
// While a rotation runs, the tree also has an older epoch and the previous volume key. Data that
// was made with them is still opened, and nothing new is made with them.
//
// Thread-safe; nothing that it returns points into it. The tree's keys are wiped when it is freed,
// those of an older epoch already when the rotation has ended. A caller that still holds a key, or
// a SessionKey, keeps its memory until it lets go.
class KeyTree {
 public:
  // epochs has at least one entry, and no number twice. previous_volume_key is empty except during
  // a rotation. previous_superblock() says what previous_superblock is.
  KeyTree(engine::VolumeId volume_id, SecretBytes volume_key, std::vector<EpochKey> epochs,
          SecretBytes previous_volume_key = {},
          std::optional<engine::Sha256Digest> previous_superblock = {});

  const engine::VolumeId& volume_id() const { return volume_id_; }
  EpochKey current_epoch() const;  // the one with the highest number
  std::uint32_t current_epoch_number() const;
  std::vector<EpochKey> epochs() const;  // ascending
  SecretBytes volume_key() const;        // for wrapping it; other callers ask for subkeys
  // Whether an older epoch or volume key is still there.
  bool is_rotating() const;

  // Begins a rotation: the volume key becomes the previous one, and the epoch, which has a higher
  // number, becomes the current one. All threads see both changes at the same moment.
  void begin_rotation(SecretBytes volume_key, EpochKey epoch,
                      std::optional<engine::Sha256Digest> previous_superblock);
  // Forgets everything except the current epoch and the volume key. From then on, this tree opens
  // nothing that was sealed under an older epoch.
  void end_rotation();

  // Returns the key of the records of one write session. Keys are cached, up to a bound. Error:
  // corrupt if the epoch is unknown.
  struct SessionKey {
    engine::CipherSuite suite;
    SecretBytes key;
  };
  Result<std::shared_ptr<const SessionKey>> session_key(std::uint32_t epoch,
                                                        const engine::SessionSalt& salt) const;
  // Whether the current epoch is of format 2 and this epoch comes before it. Then only those
  // records of this epoch count that were there when the current one began, and none of its files
  // under db/.
  bool is_superseded(std::uint32_t epoch) const;
  // The format of an epoch. Error: corrupt if the epoch is unknown.
  Result<EpochFormat> epoch_format(std::uint32_t epoch) const;
  // Returns the key of one file under db/: 32 bytes, for aes-256-gcm whatever the epoch's suite.
  // name is the file's lasting name (lasting_file_name()); in format 1 the key does not depend on
  // it. A padded file (FileHeader::is_padded) has another key than one that is not padded; format 1
  // has no padded files.
  Result<SecretBytes> database_file_key(std::uint32_t epoch, ByteView file_salt,
                                        std::string_view name, bool is_padded = false) const;
  // derive_volume_subkey() of the volume key.
  SecretBytes volume_subkey(std::string_view purpose) const;
  // The same of the previous volume key; none except during a rotation.
  std::optional<SecretBytes> previous_volume_subkey(std::string_view purpose) const;
  // The digest (superblock_digest()) of the one superblock that counts under the previous volume
  // key. Any other was made by an attacker who has that key, or was put back. None except during a
  // rotation, and none if the rotation was begun by a program that stored no digest.
  std::optional<engine::Sha256Digest> previous_superblock() const;
  // The value that known_volumes pins: SHA-256 of the volume id and the subkey "fingerprint". It is
  // not secret.
  engine::Sha256Digest fingerprint() const;
  // The fingerprint of the previous volume key. That the keyring holds this key shows only that the
  // maker of the keyring had both keys, and a former recipient had the older one, too. So a caller
  // that knows the volume by the older key takes the new one for its successor only if a passphrase
  // or the user vouches for that (docs/SECURITY.md, "How other machines learn the new
  // fingerprint").
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
