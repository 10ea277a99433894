// SPDX-License-Identifier: Apache-2.0
// Making the keys of a volume, and opening them: see keyring.h.
#include <fmt/format.h>

#include <algorithm>

#include "metadata/format/document.h"
#include "metadata/format/keyring.h"
#include "metadata/format/rfc3339.h"
#include "metadata/format/sealed_secret.h"
#include "metadata/format/text_bytes.h"

namespace nacre::metadata {

namespace {

constexpr std::size_t volume_key_size_bytes = 32;
constexpr std::size_t salt_size_bytes = 32;
constexpr std::size_t passphrase_key_size_bytes = 32;  // K1; K2 is as long
constexpr std::string_view private_key_aad = "nacre private key";

std::string oaep_label(const engine::VolumeId& volume_id) {
  return "nacre volume key" + to_hex(volume_id);
}

// K1 seals the private key, K2 keys the recipient's MAC.
struct PassphraseKeys {
  SecretBytes both;
  ByteView sealing() const { return both.view().first(passphrase_key_size_bytes); }
  ByteView mac() const { return both.view().last(passphrase_key_size_bytes); }
};

Result<PassphraseKeys> derive(ByteView passphrase, const PassphraseLock& lock) {
  NACRE_ASSIGN(SecretBytes both,
               engine::argon2id(passphrase, lock.salt, lock.kdf, 2 * passphrase_key_size_bytes));
  return PassphraseKeys{std::move(both)};
}

engine::Sha256Digest recipient_mac(const PassphraseKeys& keys, const engine::VolumeId& volume_id,
                                   const Recipient& recipient) {
  const ByteView purpose = as_bytes("nacre recipient");
  Bytes message(purpose.begin(), purpose.end());
  message.insert(message.end(), volume_id.begin(), volume_id.end());
  message.insert(message.end(), recipient.fingerprint.begin(), recipient.fingerprint.end());
  message.insert(message.end(), recipient.wrapped_volume_key.begin(),
                 recipient.wrapped_volume_key.end());
  return engine::hmac_sha256(keys.mac(), message);
}

Bytes epoch_aad(const engine::VolumeId& volume_id, std::uint32_t number,
                engine::CipherSuite suite) {
  Bytes aad(volume_id.begin(), volume_id.end());
  aad.resize(aad.size() + sizeof number);
  store_le(aad.data() + volume_id.size(), number);
  aad.push_back(static_cast<Byte>(suite));
  return aad;
}

Result<Recipient> make_recipient(const engine::VolumeId& volume_id, ByteView volume_key,
                                 const std::string& label, const engine::RsaPublicKey& key) {
  NACRE_TRY(check_label(label));
  Recipient recipient{.label = label, .created = rfc3339_now()};
  recipient.public_key = key.to_der();
  recipient.fingerprint = engine::sha256(recipient.public_key);
  NACRE_ASSIGN(recipient.wrapped_volume_key, key.wrap(volume_key, oaep_label(volume_id)));
  return recipient;
}

Result<Recipient> make_recipient(const engine::VolumeId& volume_id, ByteView volume_key,
                                 const NewPassphrase& wanted) {
  if (wanted.passphrase.empty()) {
    return fail(ErrorCode::invalid_argument, "the passphrase is empty");
  }
  PassphraseLock lock{.kdf = wanted.kdf, .salt = Bytes(salt_size_bytes)};
  engine::random_bytes(lock.salt);
  NACRE_ASSIGN(const PassphraseKeys keys, derive(wanted.passphrase.view(), lock));
  NACRE_ASSIGN(const auto private_key, engine::RsaPrivateKey::generate(wanted.rsa_bits));
  NACRE_ASSIGN(const SecretBytes der, private_key.to_der());
  NACRE_ASSIGN(lock.sealed_private_key,
               seal_secret(keys.sealing(), as_bytes(private_key_aad), der.view()));
  NACRE_ASSIGN(Recipient recipient,
               make_recipient(volume_id, volume_key, wanted.label, private_key.public_key()));
  lock.mac = recipient_mac(keys, volume_id, recipient);
  recipient.passphrase = std::move(lock);
  return recipient;
}

tl::unexpected<Error> wrong_key(std::string message) {
  return fail(ErrorCode::wrong_key, std::move(message));
}
tl::unexpected<Error> substituted(const Recipient& recipient, std::string_view why) {
  return fail(ErrorCode::tampered,
              fmt::format("recipient {} of the keyring was changed by somebody: {}",
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

// wrong_key when the passphrase is not this recipient's.
Result<SecretBytes> open_recipient(const Keyring& keyring, const Recipient& recipient,
                                   ByteView passphrase) {
  const PassphraseLock& lock = *recipient.passphrase;
  NACRE_ASSIGN(const PassphraseKeys keys, derive(passphrase, lock));
  const auto der = open_secret(keys.sealing(), as_bytes(private_key_aad), lock.sealed_private_key);
  if (!der) return wrong_key("the passphrase is not this recipient's");
  const auto private_key = engine::RsaPrivateKey::from_der(der->view());
  if (!private_key || private_key->public_key().fingerprint() != recipient.fingerprint) {
    return substituted(recipient, "its public key is not that of its private key");
  }
  if (!equal_constant_time(recipient_mac(keys, keyring.volume_id, recipient), lock.mac)) {
    return substituted(recipient, "its MAC is not that of its passphrase and of this volume");
  }
  return unwrap_volume_key(keyring, recipient, *private_key);
}

Result<SecretBytes> open_volume_key(const Keyring& keyring, ByteView passphrase) {
  std::optional<Error> failure;
  bool any = false;
  for (const Recipient& recipient : keyring.recipients) {
    if (!recipient.passphrase) continue;
    any = true;
    auto volume_key = open_recipient(keyring, recipient, passphrase);
    if (volume_key || volume_key.error().code == ErrorCode::tampered) return volume_key;
    // Not being able to try one, say for want of memory, is no verdict about the passphrase.
    if (volume_key.error().code != ErrorCode::wrong_key) failure = volume_key.error();
  }
  if (failure) return tl::unexpected(*failure);
  if (!any) {
    return wrong_key("this volume has no passphrase: open it with a private key (--identity)");
  }
  return wrong_key("the passphrase does not open this volume");
}

Result<SecretBytes> open_volume_key(const Keyring& keyring, const engine::RsaPrivateKey& identity) {
  const engine::Sha256Digest fingerprint = identity.public_key().fingerprint();
  for (const Recipient& recipient : keyring.recipients) {
    if (recipient.fingerprint == fingerprint) {
      return unwrap_volume_key(keyring, recipient, identity);
    }
  }
  return wrong_key(fmt::format("the key {} is not among this volume's {} recipients",
                               to_hex(fingerprint).substr(0, 16), keyring.recipients.size()));
}

}  // namespace

Result<NewKeyring> create_keyring(const engine::VolumeId& volume_id, engine::CipherSuite suite,
                                  std::span<const NewRecipient> recipients) {
  if (recipients.empty()) {
    return fail(ErrorCode::invalid_argument,
                "a volume needs a passphrase or a public key that can open it");
  }
  SecretBytes volume_key(volume_key_size_bytes);
  engine::random_bytes(volume_key.mutable_view());

  Keyring keyring{.volume_id = volume_id};
  std::size_t passphrase_count = 0;
  for (const NewRecipient& wanted : recipients) {
    const auto* passphrase = std::get_if<NewPassphrase>(&wanted);
    const auto* public_key = std::get_if<NewPublicKey>(&wanted);
    NACRE_ASSIGN(Recipient recipient,
                 passphrase ? make_recipient(volume_id, volume_key.view(), *passphrase)
                            : make_recipient(volume_id, volume_key.view(), public_key->label,
                                             public_key->key));
    passphrase_count += passphrase != nullptr;
    for (const Recipient& other : keyring.recipients) {
      if (other.fingerprint == recipient.fingerprint) {
        return fail(ErrorCode::invalid_argument, "one public key is given twice");
      }
    }
    keyring.recipients.push_back(std::move(recipient));
  }
  if (keyring.recipients.size() > recipient_count_max || passphrase_count > passphrase_count_max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a volume has at most {} recipients, of which {} passphrases",
                            recipient_count_max, passphrase_count_max));
  }

  EpochKey epoch{.number = 1, .suite = suite, .key = SecretBytes(engine::key_size_bytes(suite))};
  engine::random_bytes(epoch.key.mutable_view());
  const SecretBytes wrapping = derive_volume_subkey(volume_id, volume_key.view(), "epoch wrap");
  NACRE_ASSIGN(Bytes wrapped,
               seal_secret(wrapping.view(), epoch_aad(volume_id, epoch.number, epoch.suite),
                           epoch.key.view()));
  keyring.epochs.push_back(
      {.number = epoch.number, .suite = suite, .wrapped_key = std::move(wrapped)});

  std::vector<EpochKey> epochs;
  epochs.push_back(std::move(epoch));
  auto keys = std::make_shared<const KeyTree>(volume_id, std::move(volume_key), std::move(epochs));
  return NewKeyring{std::move(keyring), std::move(keys)};
}

Result<std::shared_ptr<const KeyTree>> open_keyring(const Unverified<Keyring>& unverified,
                                                    const VolumeSecret& secret) {
  const Keyring& keyring = unverified.claims;
  const auto* passphrase = std::get_if<SecretBytes>(&secret);
  NACRE_ASSIGN(SecretBytes volume_key,
               passphrase ? open_volume_key(keyring, passphrase->view())
                          : open_volume_key(keyring, std::get<engine::RsaPrivateKey>(secret)));
  const auto subkey = [&](std::string_view purpose) {
    return derive_volume_subkey(keyring.volume_id, volume_key.view(), purpose);
  };
  NACRE_TRY(verify(unverified.seal, subkey("keyring mac").view(), "keyring"));

  const SecretBytes wrapping = subkey("epoch wrap");
  std::vector<EpochKey> epochs;
  for (const WrappedEpoch& epoch : keyring.epochs) {
    auto key = open_secret(wrapping.view(), epoch_aad(keyring.volume_id, epoch.number, epoch.suite),
                           epoch.wrapped_key);
    if (!key) return add_context(key.error(), fmt::format("key of epoch {}", epoch.number));
    epochs.push_back({.number = epoch.number, .suite = epoch.suite, .key = std::move(*key)});
  }
  return std::make_shared<const KeyTree>(keyring.volume_id, std::move(volume_key),
                                         std::move(epochs));
}

}  // namespace nacre::metadata
