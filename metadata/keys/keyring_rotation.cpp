// SPDX-License-Identifier: Apache-2.0
#include "metadata/keys/keyring_rotation.h"

#include <fmt/format.h>

#include <algorithm>

#include "metadata/keys/keyring_parts.h"
#include "metadata/keys/passphrase_seal.h"
#include "metadata/text/document.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

std::string name_of(const Recipient& recipient) {
  return fmt::format("{} ({})", to_hex(recipient.fingerprint).substr(0, 16), recipient.label);
}

Result<void> check_can_be_wrapped_for(const Recipient& recipient) {
  if (recipient.other_kind) {
    return fail(ErrorCode::unsupported,
                fmt::format("recipient {} is of kind {}, for which this Nacre cannot wrap a new "
                            "key: use a newer one, or remove that recipient first",
                            name_of(recipient), recipient.other_kind->number));
  }
  if (recipient.public_key.empty()) {
    return fail(ErrorCode::not_permitted,
                fmt::format("passphrase {} has no RSA key pair, so only the passphrase itself can "
                            "give it a new key: name a file that holds it with "
                            "--with-passphrase-file, or remove that recipient first",
                            name_of(recipient)));
  }
  return {};
}

Result<void> wrap_for(Recipient& recipient, const engine::VolumeId& volume_id,
                      ByteView volume_key) {
  NACRE_TRY(check_can_be_wrapped_for(recipient));
  NACRE_ASSIGN(const auto public_key, engine::RsaPublicKey::from_der(recipient.public_key));
  NACRE_ASSIGN(recipient.wrapped_volume_key, public_key.wrap(volume_key, oaep_label(volume_id)));
  if (auto& lock = recipient.passphrase) {
    lock->mac.reset();
    lock->sealed_volume_key.clear();
    lock->follows.reset();
  }
  return {};
}

// Whether seal can give this recipient the volume key in format 2: the recipient must be a
// passphrase, and seal must be that passphrase's.
bool may_be_sealed(const Recipient& recipient, const RecipientSeal& seal) {
  if (!recipient.passphrase || recipient.fingerprint != seal.fingerprint) return false;
  const PassphraseLock& lock = *recipient.passphrase;
  return lock.check ? equal_constant_time(*lock.check, seal.check)
                    : !seal.sealed_private_key.empty();
}

const RecipientSeal* find_seal(const Recipient& recipient, std::span<const RecipientSeal> seals) {
  const auto seal = std::find_if(seals.begin(), seals.end(), [&](const RecipientSeal& each) {
    return may_be_sealed(recipient, each);
  });
  return seal == seals.end() ? nullptr : &*seal;
}

Result<void> give_volume_key(Recipient& recipient, const engine::VolumeId& volume_id,
                             ByteView volume_key, const engine::Sha256Digest& follows,
                             std::span<const RecipientSeal> seals) {
  const RecipientSeal* const seal = find_seal(recipient, seals);
  if (seal == nullptr) return wrap_for(recipient, volume_id, volume_key);
  if (!recipient.passphrase->check) {
    recipient.passphrase->sealed_private_key = seal->sealed_private_key;
  }
  return seal_volume_key(recipient, volume_id, *seal, volume_key, follows);
}

Result<void> check_none_is_under_way(const Keyring& keyring, const KeyTree& keys) {
  if (!keys.is_rotating() && keyring.epochs.size() == 1) return {};
  return fail(ErrorCode::busy,
              "a rotation of this volume's keys is under way: let it come to its end first "
              "('nacre key status' tells how far it is)");
}

SecretBytes twin_of(const SecretBytes& secret) {
  return SecretBytes(secret.view());
}
EpochKey twin_of(const EpochKey& epoch) {
  return {.number = epoch.number,
          .suite = epoch.suite,
          .key = twin_of(epoch.key),
          .format = epoch.format};
}

}  // namespace

std::unique_ptr<KeyTree> NextKeys::tree(const KeyTree& keys,
                                        const engine::Sha256Digest& superblock) const {
  std::vector<EpochKey> epochs = keys.epochs();
  epochs.push_back(twin_of(epoch));
  return std::make_unique<KeyTree>(keys.volume_id(), twin_of(volume_key), std::move(epochs),
                                   keys.volume_key(), superblock);
}

Result<NextKeys> draw_next_keys(const Keyring& keyring, const KeyTree& keys,
                                engine::CipherSuite suite, EpochFormat format) {
  NACRE_TRY(check_none_is_under_way(keyring, keys));
  if (keyring.epochs.back().number == UINT32_MAX) {
    return fail(ErrorCode::too_big,
                "this volume has had 2^32 rotations of its keys, the most that its format allows; "
                "copy it to a new volume");
  }
  NextKeys next{.volume_key = SecretBytes(volume_key_size_bytes),
                .epoch = {.number = keyring.epochs.back().number + 1,
                          .suite = suite,
                          .key = SecretBytes(engine::key_size_bytes(suite)),
                          .format = std::max(format, keyring.epochs.back().format)}};
  engine::random_bytes(next.volume_key.mutable_view());
  engine::random_bytes(next.epoch.key.mutable_view());
  return next;
}

Result<KeyringRotation> begin_keyring_rotation(const Keyring& keyring, const KeyTree& keys,
                                               const engine::Sha256Digest& superblock,
                                               engine::CipherSuite suite, EpochFormat format,
                                               std::span<const RecipientSeal> seals) {
  NACRE_ASSIGN(const NextKeys secrets, draw_next_keys(keyring, keys, suite, format));
  return begin_keyring_rotation(keyring, keys, superblock, secrets, seals);
}

Result<KeyringRotation> begin_keyring_rotation(const Keyring& keyring, const KeyTree& keys,
                                               const engine::Sha256Digest& superblock,
                                               const NextKeys& secrets,
                                               std::span<const RecipientSeal> seals) {
  NACRE_TRY(check_none_is_under_way(keyring, keys));
  if (secrets.epoch.number != keyring.epochs.back().number + 1 ||
      secrets.epoch.format < keyring.epochs.back().format) {
    return fail(ErrorCode::busy, "the keyring has other epochs than when the new keys were drawn");
  }
  // The end of the rotation needs one more generation: a rotation that could not end is not begun.
  NACRE_TRY(check_generation(next_generation(next_generation(keyring.generation)), "keyring"));
  KeyringRotation next{.keyring = keyring};
  const engine::VolumeId& volume_id = keys.volume_id();
  next.keys = secrets.tree(keys, superblock);
  const SecretBytes& volume_key = secrets.volume_key;
  next.keyring.generation = next_generation(keyring.generation);
  next.keyring.epochs.clear();
  for (const EpochKey& each : next.keys->epochs()) {
    NACRE_ASSIGN(WrappedEpoch wrapped, wrap_epoch(volume_id, volume_key.view(), each));
    next.keyring.epochs.push_back(std::move(wrapped));
  }
  for (Recipient& recipient : next.keyring.recipients) {
    NACRE_TRY(
        give_volume_key(recipient, volume_id, volume_key.view(), keys.fingerprint(),
                        is_of_format_2(next.keyring) ? seals : std::span<const RecipientSeal>()));
  }
  const SecretBytes previous = keys.volume_key();
  NACRE_ASSIGN(next.keyring.sealed_previous_volume_key,
               seal_previous_volume_key(volume_id, volume_key.view(), previous.view()));
  next.keyring.previous_superblock = superblock;
  return next;
}

Result<void> check_can_be_rotated(const Keyring& keyring, std::span<const RecipientSeal> seals) {
  for (const Recipient& recipient : keyring.recipients) {
    if (find_seal(recipient, seals) == nullptr) NACRE_TRY(check_can_be_wrapped_for(recipient));
  }
  return {};
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
    if (!recipient.passphrase || recipient.passphrase->check || recipient.passphrase->mac) continue;
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
