// SPDX-License-Identifier: Apache-2.0
#include "metadata/keys/passphrase_seal.h"

#include <string_view>

#include "metadata/keys/sealed_secret.h"

namespace nacre::metadata {

namespace {

constexpr std::size_t derived_size_bytes = 32;

void append(Bytes& bytes, ByteView more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

SecretBytes derive(const PassphraseKeys& keys, const engine::VolumeId& volume_id,
                   std::string_view purpose) {
  return engine::hkdf_sha256(keys.both.view(), volume_id, purpose, derived_size_bytes).value();
}

// The bytes that bind a seal to its recipient, and through the check to passphrase, salt and cost.
Bytes binding(const engine::VolumeId& volume_id, const RecipientSeal& seal) {
  Bytes bytes;
  append(bytes, as_bytes("nacre passphrase recipient"));
  append(bytes, volume_id);
  append(bytes, seal.fingerprint);
  append(bytes, seal.check);
  return bytes;
}

Bytes volume_key_aad(const engine::VolumeId& volume_id, const RecipientSeal& seal,
                     const std::optional<engine::Sha256Digest>& follows) {
  Bytes aad = binding(volume_id, seal);
  if (follows) append(aad, *follows);
  return aad;
}

Bytes private_key_aad_of(const engine::VolumeId& volume_id, const RecipientSeal& seal) {
  Bytes aad;
  append(aad, as_bytes(private_key_aad));
  append(aad, binding(volume_id, seal));
  return aad;
}

Result<SecretBytes> open_with_key_pair(const Recipient& recipient,
                                       const engine::VolumeId& volume_id,
                                       const RecipientSeal& seal) {
  const auto der = open_secret(seal.key.view(), private_key_aad_of(volume_id, seal),
                               recipient.passphrase->sealed_private_key);
  if (!der) return tl::unexpected(der.error());
  const auto private_key = engine::RsaPrivateKey::from_der(der->view());
  if (!private_key) return tl::unexpected(private_key.error());
  if (private_key->public_key().fingerprint() != recipient.fingerprint) {
    return passphrase_does_not_open();
  }
  return private_key->unwrap(recipient.wrapped_volume_key, oaep_label(volume_id));
}

}  // namespace

tl::unexpected<Error> passphrase_does_not_open() {
  return fail(ErrorCode::wrong_key,
              "the passphrase does not open this volume, or the keyring was changed");
}

RecipientSeal derive_recipient_seal(const PassphraseKeys& keys, const engine::VolumeId& volume_id,
                                    ByteView public_key) {
  RecipientSeal seal;
  const SecretBytes check = derive(keys, volume_id, "nacre passphrase check");
  std::copy(check.view().begin(), check.view().end(), seal.check.begin());
  seal.key = derive(keys, volume_id, "nacre passphrase seal");
  seal.fingerprint = passphrase_fingerprint(seal.check, public_key);
  return seal;
}

Result<void> seal_volume_key(Recipient& recipient, const engine::VolumeId& volume_id,
                             const RecipientSeal& seal, ByteView volume_key,
                             const std::optional<engine::Sha256Digest>& follows) {
  PassphraseLock& lock = *recipient.passphrase;
  NACRE_ASSIGN(lock.sealed_volume_key,
               seal_secret(seal.key.view(), volume_key_aad(volume_id, seal, follows), volume_key));
  lock.check = seal.check;
  lock.follows = follows;
  lock.mac.reset();
  recipient.fingerprint = seal.fingerprint;
  recipient.wrapped_volume_key.clear();
  return {};
}

Result<SecretBytes> unseal_volume_key(const Recipient& recipient, const engine::VolumeId& volume_id,
                                      const RecipientSeal& seal) {
  const PassphraseLock& lock = *recipient.passphrase;
  // This comparison comes first: whatever opens after it belongs to that one passphrase.
  if (!equal_constant_time(seal.check, *lock.check)) return passphrase_does_not_open();
  auto volume_key =
      lock.sealed_volume_key.empty()
          ? open_with_key_pair(recipient, volume_id, seal)
          : open_secret(seal.key.view(), volume_key_aad(volume_id, seal, lock.follows),
                        lock.sealed_volume_key);
  if (!volume_key || volume_key->size() != volume_key_size_bytes) return passphrase_does_not_open();
  return volume_key;
}

Result<Bytes> seal_private_key(const engine::VolumeId& volume_id, const RecipientSeal& seal,
                               ByteView private_key) {
  return seal_secret(seal.key.view(), private_key_aad_of(volume_id, seal), private_key);
}

}  // namespace nacre::metadata
