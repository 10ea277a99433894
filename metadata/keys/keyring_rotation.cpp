// SPDX-License-Identifier: Apache-2.0
#include "metadata/keys/keyring_rotation.h"

#include <algorithm>

#include "metadata/keys/keyring_parts.h"
#include "metadata/text/document.h"

namespace nacre::metadata {

namespace {

Result<void> wrap_for(Recipient& recipient, const engine::VolumeId& volume_id,
                      ByteView volume_key) {
  NACRE_ASSIGN(const auto public_key, engine::RsaPublicKey::from_der(recipient.public_key));
  NACRE_ASSIGN(recipient.wrapped_volume_key, public_key.wrap(volume_key, oaep_label(volume_id)));
  if (recipient.passphrase) recipient.passphrase->mac.reset();
  return {};
}

}  // namespace

Result<KeyringRotation> begin_keyring_rotation(const Keyring& keyring, const KeyTree& keys,
                                               const engine::Sha256Digest& superblock,
                                               engine::CipherSuite suite, EpochFormat format) {
  if (keys.is_rotating() || keyring.epochs.size() != 1) {
    return fail(ErrorCode::busy,
                "a rotation of this volume's keys is under way: let it come to its end first "
                "('nacre key status' tells how far it is)");
  }
  if (keyring.epochs.back().number == UINT32_MAX) {
    return fail(ErrorCode::too_big, "this volume has had 2^32 epochs, the most that there are");
  }
  KeyringRotation next{.keyring = keyring};
  const engine::VolumeId& volume_id = keys.volume_id();
  SecretBytes volume_key(volume_key_size_bytes);
  engine::random_bytes(volume_key.mutable_view());
  EpochKey epoch{.number = keyring.epochs.back().number + 1,
                 .suite = suite,
                 .key = SecretBytes(engine::key_size_bytes(suite)),
                 .format = std::max(format, keyring.epochs.back().format)};
  engine::random_bytes(epoch.key.mutable_view());

  std::vector<EpochKey> epochs = keys.epochs();
  epochs.push_back(std::move(epoch));
  next.keyring.generation = next_generation(keyring.generation);
  next.keyring.epochs.clear();
  for (const EpochKey& each : epochs) {
    NACRE_ASSIGN(WrappedEpoch wrapped, wrap_epoch(volume_id, volume_key.view(), each));
    next.keyring.epochs.push_back(std::move(wrapped));
  }
  for (Recipient& recipient : next.keyring.recipients) {
    NACRE_TRY(wrap_for(recipient, volume_id, volume_key.view()));
  }
  SecretBytes previous = keys.volume_key();
  NACRE_ASSIGN(next.keyring.sealed_previous_volume_key,
               seal_previous_volume_key(volume_id, volume_key.view(), previous.view()));
  next.keys = std::make_unique<KeyTree>(volume_id, std::move(volume_key), std::move(epochs),
                                        std::move(previous), superblock);
  next.keyring.previous_superblock = superblock;
  return next;
}

Keyring end_keyring_rotation(Keyring keyring) {
  keyring.generation = next_generation(keyring.generation);
  keyring.previous_superblock.reset();
  keyring.epochs.erase(keyring.epochs.begin(), std::prev(keyring.epochs.end()));
  keyring.sealed_previous_volume_key.clear();
  return keyring;
}

Result<bool> confirm_passphrase(Keyring& keyring, const KeyTree& keys, ByteView passphrase) {
  bool confirmed = false;
  for (Recipient& recipient : keyring.recipients) {
    if (!recipient.passphrase || recipient.passphrase->mac) continue;
    NACRE_ASSIGN(const PassphraseKeys derived,
                 derive_passphrase_keys(passphrase, *recipient.passphrase));
    const auto private_key = open_private_key(derived, recipient);
    if (!private_key) continue;
    const auto volume_key =
        private_key->unwrap(recipient.wrapped_volume_key, oaep_label(keyring.volume_id));
    if (!volume_key || !equal_constant_time(volume_key->view(), keys.volume_key().view())) continue;
    recipient.passphrase->mac = recipient_mac(derived, keyring.volume_id, recipient);
    confirmed = true;
  }
  return confirmed;
}

}  // namespace nacre::metadata
  // Another one ends the rotation: what could not be finished is not begun.
  NACRE_TRY(check_generation(next_generation(next_generation(keyring.generation)), "keyring"));
