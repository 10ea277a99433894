// SPDX-License-Identifier: Apache-2.0
// Makes and opens the keys of a volume.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "metadata/keys/keyring.h"
#include "metadata/keys/keyring_parts.h"
#include "metadata/keys/passphrase_seal.h"
#include "metadata/keys/sealed_secret.h"
#include "metadata/text/document.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

tl::unexpected<Error> wrong_key(std::string message) {
  return fail(ErrorCode::wrong_key, std::move(message));
}
tl::unexpected<Error> substituted(const Recipient& recipient, std::string_view why) {
  return fail(ErrorCode::tampered, fmt::format("recipient {} of the keyring was changed: {}",
                                               to_hex(recipient.fingerprint).substr(0, 16), why));
}

Result<SecretBytes> unwrap_volume_key(const Keyring& keyring, const Recipient& recipient,
                                      const engine::RsaPrivateKey& private_key) {
  auto volume_key = private_key.unwrap(recipient.wrapped_volume_key, oaep_label(keyring.volume_id));
  if (!volume_key || volume_key->size() != volume_key_size_bytes) {
    return substituted(recipient, "the volume key was not wrapped for it, or for another volume");
  }
  return volume_key;
}

// Opens a recipient of format 2. Every failure gives the same error.
Result<KeyringAccess> open_sealed_recipient(const Keyring& keyring, std::size_t index,
                                            const PassphraseKeys& keys) {
  const Recipient& recipient = keyring.recipients[index];
  KeyringAccess access{.recipient_index = index, .is_unconfirmed = !is_confirmed(recipient)};
  access.seal = derive_recipient_seal(keys, keyring.volume_id, recipient.public_key);
  NACRE_ASSIGN(access.volume_key, unseal_volume_key(recipient, keyring.volume_id, *access.seal));
  if (access.is_unconfirmed) access.completed = recipient;
  return access;
}

// Error: wrong_key if the passphrase is not this recipient's.
Result<KeyringAccess> open_recipient(const Keyring& keyring, std::size_t index,
                                     ByteView passphrase) {
  const Recipient& recipient = keyring.recipients[index];
  const PassphraseLock& lock = *recipient.passphrase;
  NACRE_ASSIGN(const PassphraseKeys keys, derive_passphrase_keys(passphrase, lock));
  if (lock.check) return open_sealed_recipient(keyring, index, keys);
  const auto private_key = open_private_key(keys, recipient);
  if (!private_key && private_key.error().code == ErrorCode::tampered) {
    return substituted(recipient, private_key.error().message);
  }
  if (!private_key) return tl::unexpected(private_key.error());
  const engine::Sha256Digest mac = recipient_mac(keys, keyring.volume_id, recipient);
  if (lock.mac && !equal_constant_time(mac, *lock.mac)) {
    return substituted(recipient, "the MAC is not that of this passphrase and volume");
  }
  KeyringAccess access{.recipient_index = index, .is_unconfirmed = !lock.mac};
  NACRE_ASSIGN(access.volume_key, unwrap_volume_key(keyring, recipient, *private_key));
  access.seal = derive_recipient_seal(keys, keyring.volume_id, recipient.public_key);
  NACRE_ASSIGN(const SecretBytes der, private_key->to_der());
  NACRE_ASSIGN(access.seal->sealed_private_key,
               seal_private_key(keyring.volume_id, *access.seal, der.view()));
  if (is_of_format_2(keyring)) {
    access.completed = recipient;
  } else if (!lock.mac) {
    access.completed = recipient;
    access.completed->passphrase->mac = mac;
  }
  return access;
}

// In format 2 the completed recipient gets its seal here, where the key that its own key follows is
// known.
Result<void> complete(KeyringAccess& access, const Keyring& keyring, const KeyTree& keys) {
  const auto previous = keys.previous_fingerprint();
  const Recipient& recipient = keyring.recipients[access.recipient_index];
  if (recipient.passphrase && !access.is_unconfirmed) {
    access.follows = is_of_format_2(keyring) ? recipient.passphrase->follows : previous;
  }
  if (!access.completed || !is_of_format_2(keyring)) return {};
  PassphraseLock& lock = *access.completed->passphrase;
  if (!lock.check) lock.sealed_private_key = access.seal->sealed_private_key;
  return seal_volume_key(*access.completed, keyring.volume_id, *access.seal,
                         access.volume_key.view(), previous);
}

// The recipients in the order in which they are tried: the cheapest first, so that no costly one
// delays it.
std::vector<std::size_t> passphrase_indexes(const Keyring& keyring) {
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < keyring.recipients.size(); ++i) {
    if (keyring.recipients[i].passphrase) indexes.push_back(i);
  }
  const auto cost = [&](std::size_t i) {
    return work_kib_of(keyring.recipients[i].passphrase->kdf);
  };
  std::stable_sort(indexes.begin(), indexes.end(),
                   [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
  return indexes;
}

Result<KeyringAccess> open_volume_key(const Keyring& keyring, ByteView passphrase,
                                      const KdfLimit& limit) {
  std::optional<Error> failure;
  const auto indexes = passphrase_indexes(keyring);
  std::uint64_t spent_kib = 0;
  for (const std::size_t index : indexes) {
    const engine::Argon2Parameters& kdf = keyring.recipients[index].passphrase->kdf;
    if (const auto affordable = check_kdf_cost(kdf, limit, spent_kib); !affordable) {
      if (!failure) failure = affordable.error();
      continue;
    }
    spent_kib += work_kib_of(kdf);
    auto access = open_recipient(keyring, index, passphrase);
    if (access || access.error().code == ErrorCode::tampered) return access;
    // A recipient that could not be tried, for example for want of memory, gives no verdict about
    // the passphrase.
    if (access.error().code != ErrorCode::wrong_key) failure = access.error();
  }
  if (failure) return tl::unexpected(*failure);
  if (indexes.empty()) {
    return wrong_key("this volume has no passphrase: open it with a private key (--identity)");
  }
  return passphrase_does_not_open();
}

Result<KeyringAccess> open_volume_key(const Keyring& keyring,
                                      const engine::RsaPrivateKey& identity) {
  const engine::Sha256Digest fingerprint = identity.public_key().fingerprint();
  for (std::size_t i = 0; i < keyring.recipients.size(); ++i) {
    // The volume key is not always wrapped for a passphrase's key pair.
    if (keyring.recipients[i].fingerprint != fingerprint) continue;
    if (keyring.recipients[i].wrapped_volume_key.empty()) continue;
    KeyringAccess access{.recipient_index = i};
    NACRE_ASSIGN(access.volume_key, unwrap_volume_key(keyring, keyring.recipients[i], identity));
    return access;
  }
  return wrong_key(fmt::format("the key {} is not among this volume's {} recipients",
                               to_hex(fingerprint).substr(0, 16), keyring.recipients.size()));
}

// A key that two recipients have would be tried twice.
Result<void> check_no_twins(const Keyring& keyring) {
  std::set<engine::Sha256Digest> fingerprints;
  for (const Recipient& recipient : keyring.recipients) {
    if (!fingerprints.insert(recipient.fingerprint).second) {
      return substituted(recipient, "the keyring has it twice");
    }
  }
  return {};
}

KdfLimit& limit_of_process() {
  static KdfLimit limit;
  return limit;
}

}  // namespace

const KdfLimit& kdf_limit() {
  return limit_of_process();
}
void set_kdf_limit(const KdfLimit& limit) {
  limit_of_process() = limit;
}

std::uint64_t work_kib_of(const engine::Argon2Parameters& kdf) {
  return std::uint64_t{kdf.memory_kib} * kdf.passes;
}

Result<void> check_kdf_cost(const engine::Argon2Parameters& kdf, const KdfLimit& limit,
                            std::uint64_t spent_kib) {
  const std::uint64_t work_kib = spent_kib + work_kib_of(kdf);
  if (kdf.memory_kib <= limit.memory_kib && work_kib <= limit.work_kib) return {};
  return fail(
      ErrorCode::not_permitted,
      fmt::format(
          "deriving the key of a passphrase takes {} MiB of memory and {} passes over it, which is "
          "more than the limit. If this volume is meant to cost that much, give --kdf-limit {}M",
          kdf.memory_kib / 1024, kdf.passes, (work_kib + 1023) / 1024));
}

Result<NewKeyring> create_keyring(const engine::VolumeId& volume_id, engine::CipherSuite suite,
                                  std::span<const NewRecipient> recipients, EpochFormat format) {
  if (recipients.empty()) {
    return fail(ErrorCode::invalid_argument,
                "a volume needs a passphrase or a public key that can open it");
  }
  SecretBytes volume_key(volume_key_size_bytes);
  engine::random_bytes(volume_key.mutable_view());

  Keyring keyring{.volume_id = volume_id};
  EpochKey epoch{.number = 1,
                 .suite = suite,
                 .key = SecretBytes(engine::key_size_bytes(suite)),
                 .format = format};
  engine::random_bytes(epoch.key.mutable_view());
  NACRE_ASSIGN(WrappedEpoch wrapped, wrap_epoch(volume_id, volume_key.view(), epoch));
  keyring.epochs.push_back(std::move(wrapped));
  for (const NewRecipient& recipient : recipients)
    NACRE_TRY(append_recipient(keyring, volume_key.view(), recipient));

  std::vector<EpochKey> epochs;
  epochs.push_back(std::move(epoch));
  auto keys = std::make_shared<KeyTree>(volume_id, std::move(volume_key), std::move(epochs));
  return NewKeyring{std::move(keyring), std::move(keys)};
}

Result<std::shared_ptr<KeyTree>> open_keyring_by_volume_key(const Unverified<Keyring>& unverified,
                                                            ByteView volume_key) {
  const Keyring& keyring = unverified.claims;
  NACRE_TRY(check_no_twins(keyring));
  const auto mac_key = derive_volume_subkey(keyring.volume_id, volume_key, "keyring mac");
  NACRE_TRY(verify(unverified.seal, mac_key.view(), "keyring"));

  std::vector<EpochKey> epochs;
  for (const WrappedEpoch& epoch : keyring.epochs) {
    NACRE_ASSIGN(EpochKey key, unwrap_epoch(keyring.volume_id, volume_key, epoch));
    epochs.push_back(std::move(key));
  }
  SecretBytes previous;
  if (!keyring.sealed_previous_volume_key.empty()) {
    NACRE_ASSIGN(previous, open_previous_volume_key(keyring.volume_id, volume_key,
                                                    keyring.sealed_previous_volume_key));
  }
  return std::make_shared<KeyTree>(keyring.volume_id, SecretBytes(volume_key), std::move(epochs),
                                   std::move(previous), keyring.previous_superblock);
}

Result<OpenedKeyring> open_keyring(const Unverified<Keyring>& unverified,
                                   const VolumeSecret& secret, const KdfLimit& limit) {
  const Keyring& keyring = unverified.claims;
  NACRE_TRY(check_no_twins(keyring));
  const auto* passphrase = std::get_if<SecretBytes>(&secret);
  NACRE_ASSIGN(KeyringAccess access,
               passphrase ? open_volume_key(keyring, passphrase->view(), limit)
                          : open_volume_key(keyring, std::get<engine::RsaPrivateKey>(secret)));
  NACRE_ASSIGN(auto keys, open_keyring_by_volume_key(unverified, access.volume_key.view()));
  NACRE_TRY(complete(access, keyring, *keys));
  return OpenedKeyring{std::move(keys), std::move(access)};
}

}  // namespace nacre::metadata
