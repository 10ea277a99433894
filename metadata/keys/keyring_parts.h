// SPDX-License-Identifier: Apache-2.0
// The parts that making, opening and changing a keyring share: how fields are derived and bound to
// each other. Internal to metadata/; keyring.h has the format. Thread-safe.
#pragma once

#include <string>

#include "metadata/keys/keyring.h"

namespace nacre::metadata {

inline constexpr std::size_t passphrase_key_size_bytes = 32;  // K1; K2 is as long
inline constexpr std::string_view private_key_aad = "nacre private key";

// K1 seals the private key, K2 keys the recipient's MAC.
struct PassphraseKeys {
  SecretBytes both;
  ByteView sealing() const { return both.view().first(passphrase_key_size_bytes); }
  ByteView mac() const { return both.view().last(passphrase_key_size_bytes); }
};

// Runs Argon2id. Error: out_of_memory if lock asks for more memory than is free, because nothing
// has authenticated its parameters yet.
Result<PassphraseKeys> derive_passphrase_keys(ByteView passphrase, const PassphraseLock& lock);
engine::Sha256Digest recipient_mac(const PassphraseKeys& keys, const engine::VolumeId& volume_id,
                                   const Recipient& recipient);
std::string oaep_label(const engine::VolumeId& volume_id);
// The fingerprint of a passphrase's recipient of format 2. public_key is empty if it has no key
// pair.
engine::Sha256Digest passphrase_fingerprint(const engine::Sha256Digest& check, ByteView public_key);

// Wraps the volume key for one more recipient, at the end of the list. The keyring has its epochs
// already, and stays as it was on failure. Errors: invalid_argument (the key is there already, too
// many recipients, an empty passphrase, a bad label, KDF parameters out of bounds), not_permitted
// (kdf_limit()).
Result<void> append_recipient(Keyring& keyring, ByteView volume_key, const NewRecipient& wanted);

// Returns the private key of a recipient of format 1. Does not check the recipient's MAC. Errors:
// wrong_key if the passphrase is not the recipient's; wrong_key too if the opened bytes are no
// private key, because with AES-GCM an attacker can make bytes that open to something under many
// passphrases; tampered if the private key does not belong to the public key.
Result<engine::RsaPrivateKey> open_private_key(const PassphraseKeys& keys,
                                               const Recipient& recipient);

Result<WrappedEpoch> wrap_epoch(const engine::VolumeId& volume_id, ByteView volume_key,
                                const EpochKey& epoch);
Result<EpochKey> unwrap_epoch(const engine::VolumeId& volume_id, ByteView volume_key,
                              const WrappedEpoch& epoch);

// Seals the volume key before this one, which the keyring keeps while a rotation runs.
Result<Bytes> seal_previous_volume_key(const engine::VolumeId& volume_id, ByteView volume_key,
                                       ByteView previous);
Result<SecretBytes> open_previous_volume_key(const engine::VolumeId& volume_id, ByteView volume_key,
                                             ByteView sealed);

}  // namespace nacre::metadata
