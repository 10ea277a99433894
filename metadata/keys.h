// SPDX-License-Identifier: Apache-2.0
// The open volume's key tree: everything below the volume key. docs/SECURITY.md, "Key tree".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/record/record.h"

namespace nacre::metadata {

struct EpochKey {
  std::uint32_t number = 0;
  engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm;
  SecretBytes key;
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
//          +- database file: HKDF(epoch key, file salt, "nacre database file"), 32 bytes
//
// Immutable but for its cache of session keys; thread-safe. Wiped when freed.
class KeyTree {
 public:
  // epochs: at least one, no number twice.
  KeyTree(engine::VolumeId volume_id, SecretBytes volume_key, std::vector<EpochKey> epochs);

  const engine::VolumeId& volume_id() const { return volume_id_; }
  const EpochKey& current_epoch() const;  // the one with the highest number

  // Key of the records of one write session; cached (bounded). corrupt when the epoch is unknown.
  struct SessionKey {
    engine::CipherSuite suite;
    SecretBytes key;
  };
  Result<std::shared_ptr<const SessionKey>> session_key(std::uint32_t epoch,
                                                        const engine::SessionSalt& salt) const;
  // Key of one file under RocksDB. Always aes-256-gcm, 32 bytes.
  Result<SecretBytes> database_file_key(std::uint32_t epoch, ByteView file_salt) const;
  // Subkeys of the volume key: "superblock mac", "keyring mac", "epoch wrap", "fingerprint".
  SecretBytes volume_subkey(std::string_view purpose) const;
  // What known_volumes pins: SHA-256 over volume id and a subkey. Not secret.
  engine::Sha256Digest fingerprint() const;

 private:
  engine::VolumeId volume_id_;
  SecretBytes volume_key_;
  std::vector<EpochKey> epochs_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::uint32_t, engine::SessionSalt>, std::shared_ptr<const SessionKey>>
      sessions_;
};

}  // namespace nacre::metadata
