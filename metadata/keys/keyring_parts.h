// SPDX-License-Identifier: Apache-2.0
// What making, opening and changing a keyring have in common: how its parts are derived and bound
// to each other. Internal to metadata/; keyring.h has the format.
#pragma once

#include <string>

#include "metadata/keys/keyring.h"

namespace nacre::metadata {

inline constexpr std::size_t volume_key_size_bytes = 32;
inline constexpr std::size_t passphrase_key_size_bytes = 32;  // K1; K2 is as long
inline constexpr std::string_view private_key_aad = "nacre private key";

// K1 seals the private key, K2 keys the recipient's MAC.
struct PassphraseKeys {
  SecretBytes both;
  ByteView sealing() const { return both.view().first(passphrase_key_size_bytes); }
  ByteView mac() const { return both.view().last(passphrase_key_size_bytes); }
};

// Argon2id. out_of_memory when it asks for more memory than is free: nobody has vouched for the
// parameters yet.
Result<PassphraseKeys> derive_passphrase_keys(ByteView passphrase, const PassphraseLock& lock);
engine::Sha256Digest recipient_mac(const PassphraseKeys& keys, const engine::VolumeId& volume_id,
                                   const Recipient& recipient);
std::string oaep_label(const engine::VolumeId& volume_id);
// Of a passphrase recipient of format 2. public_key: empty if it has no key pair.
engine::Sha256Digest passphrase_fingerprint(const engine::Sha256Digest& check, ByteView public_key);

// The volume key wrapped for one more recipient, at the end of the list. invalid_argument: a key
// that is there already, too many of them, an empty passphrase, a bad label, KDF parameters out of
// bounds. not_permitted: kdf_limit(). The keyring, which has its epochs, stays as it was on
// failure.
Result<void> append_recipient(Keyring& keyring, ByteView volume_key, const NewRecipient& wanted);

// Of a recipient of format 1: its private key. wrong_key when the passphrase is not its own, and
// also when what opens is no private key: AES-GCM lets somebody make bytes that open to something
// under many passphrases. tampered when the private key is not that of its public one. Says nothing
// about its MAC.
Result<engine::RsaPrivateKey> open_private_key(const PassphraseKeys& keys,
                                               const Recipient& recipient);

Result<WrappedEpoch> wrap_epoch(const engine::VolumeId& volume_id, ByteView volume_key,
                                const EpochKey& epoch);
Result<EpochKey> unwrap_epoch(const engine::VolumeId& volume_id, ByteView volume_key,
                              const WrappedEpoch& epoch);

// The volume key before this one, for as long as a rotation runs.
Result<Bytes> seal_previous_volume_key(const engine::VolumeId& volume_id, ByteView volume_key,
                                       ByteView previous);
Result<SecretBytes> open_previous_volume_key(const engine::VolumeId& volume_id, ByteView volume_key,
                                             ByteView sealed);

}  // namespace nacre::metadata
