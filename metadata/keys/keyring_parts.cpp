// SPDX-License-Identifier: Apache-2.0
#include "metadata/keys/keyring_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "metadata/keys/passphrase_seal.h"
#include "metadata/keys/sealed_secret.h"
#include "metadata/text/document.h"
#include "metadata/text/rfc3339.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

Bytes epoch_aad(const engine::VolumeId& volume_id, std::uint32_t number, engine::CipherSuite suite,
                EpochFormat format) {
  Bytes aad(volume_id.begin(), volume_id.end());
  aad.resize(aad.size() + sizeof number);
  store_le(aad.data() + volume_id.size(), number);
  aad.push_back(static_cast<Byte>(suite));
  if (format != EpochFormat::one) aad.push_back(static_cast<Byte>(format));
  return aad;
}

SecretBytes epoch_wrapping(const engine::VolumeId& volume_id, ByteView volume_key) {
  return derive_volume_subkey(volume_id, volume_key, "epoch wrap");
}

SecretBytes previous_wrapping(const engine::VolumeId& volume_id, ByteView volume_key) {
  return derive_volume_subkey(volume_id, volume_key, "previous volume key");
}

constexpr std::size_t salt_size_bytes = 32;

Result<Recipient> make_recipient(const engine::VolumeId& volume_id, ByteView volume_key,
                                 const std::string& label, const engine::RsaPublicKey& key) {
  NACRE_TRY(check_label(label));
  Recipient recipient{.label = label, .created = rfc3339_now()};
  recipient.public_key = key.to_der();
  recipient.fingerprint = engine::sha256(recipient.public_key);
  NACRE_ASSIGN(recipient.wrapped_volume_key, key.wrap(volume_key, oaep_label(volume_id)));
  return recipient;
}

Result<Recipient> make_recipient_of_format_2(const engine::VolumeId& volume_id, ByteView volume_key,
                                             const NewPassphrase& wanted,
                                             const PassphraseKeys& keys, PassphraseLock lock) {
  NACRE_TRY(check_label(wanted.label));
  Recipient recipient{.label = wanted.label, .created = rfc3339_now()};
  SecretBytes der;
  if (wanted.has_key_pair) {
    NACRE_ASSIGN(const auto private_key, engine::RsaPrivateKey::generate(wanted.rsa_bits));
    NACRE_ASSIGN(der, private_key.to_der());
    recipient.public_key = private_key.public_key().to_der();
  }
  const RecipientSeal seal = derive_recipient_seal(keys, volume_id, recipient.public_key);
  if (wanted.has_key_pair) {
    NACRE_ASSIGN(lock.sealed_private_key, seal_private_key(volume_id, seal, der.view()));
  }
  recipient.passphrase = std::move(lock);
  NACRE_TRY(seal_volume_key(recipient, volume_id, seal, volume_key, std::nullopt));
  return recipient;
}

Result<Recipient> make_recipient(const Keyring& keyring, ByteView volume_key,
                                 const NewPassphrase& wanted) {
  const engine::VolumeId& volume_id = keyring.volume_id;
  if (wanted.passphrase.empty()) {
    return fail(ErrorCode::invalid_argument, "the passphrase is empty");
  }
  PassphraseLock lock{.kdf = wanted.kdf, .salt = Bytes(salt_size_bytes)};
  engine::random_bytes(lock.salt);
  NACRE_ASSIGN(const PassphraseKeys keys, derive_passphrase_keys(wanted.passphrase.view(), lock));
  if (is_of_format_2(keyring)) {
    return make_recipient_of_format_2(volume_id, volume_key, wanted, keys, std::move(lock));
  }
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

// An opening may have to try each passphrase.
Result<void> check_can_be_opened(const Keyring& keyring, const engine::Argon2Parameters& added) {
  const KdfLimit& limit = kdf_limit();
  if (added.memory_kib > engine::argon2_memory_kib_max ||
      added.passes > engine::argon2_passes_max) {
    return {};  // no limit allows it: the derivation says so
  }
  NACRE_TRY(check_kdf_cost(added, limit));
  std::uint64_t work_kib = work_kib_of(added);
  for (const Recipient& recipient : keyring.recipients) {
    if (recipient.passphrase) work_kib += work_kib_of(recipient.passphrase->kdf);
  }
  if (work_kib <= limit.work_kib) return {};
  return fail(
      ErrorCode::not_permitted,
      fmt::format("with this passphrase an opening might cost {} MiB of memory times passes, "
                  "more than the {} that it may: give a smaller --kdf-memory or --kdf-time, "
                  "or a larger --kdf-limit here and whenever the volume is opened",
                  work_kib / 1024, limit.work_kib / 1024));
}

}  // namespace

Result<PassphraseKeys> derive_passphrase_keys(ByteView passphrase, const PassphraseLock& lock) {
  const std::uint64_t available_kib = engine::available_memory_kib();
  if (lock.kdf.memory_kib > available_kib) {
    return fail(
        ErrorCode::out_of_memory,
        fmt::format(
            "the key derivation of a passphrase asks for {} MiB of memory, and {} are free here: "
            "end other programs, or open the volume on a larger machine or with another secret. If "
            "no passphrase of yours costs that much, the keyring was changed to make this fail",
            lock.kdf.memory_kib / 1024, available_kib / 1024));
  }
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

engine::Sha256Digest passphrase_fingerprint(const engine::Sha256Digest& check,
                                            ByteView public_key) {
  if (!public_key.empty()) return engine::sha256(public_key);
  const ByteView purpose = as_bytes("nacre passphrase recipient");
  Bytes message(purpose.begin(), purpose.end());
  message.insert(message.end(), check.begin(), check.end());
  return engine::sha256(message);
}

std::string oaep_label(const engine::VolumeId& volume_id) {
  return "nacre volume key" + to_hex(volume_id);
}

Result<void> append_recipient(Keyring& keyring, ByteView volume_key, const NewRecipient& wanted) {
  const auto* passphrase = std::get_if<NewPassphrase>(&wanted);
  const auto* public_key = std::get_if<NewPublicKey>(&wanted);
  const auto passphrase_count =
      std::count_if(keyring.recipients.begin(), keyring.recipients.end(),
                    [](const Recipient& recipient) { return recipient.passphrase.has_value(); });
  if (keyring.recipients.size() >= recipient_count_max ||
      (passphrase && static_cast<std::size_t>(passphrase_count) >= passphrase_count_max)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a volume has at most {} recipients, of which {} passphrases",
                            recipient_count_max, passphrase_count_max));
  }
  if (passphrase) NACRE_TRY(check_can_be_opened(keyring, passphrase->kdf));
  NACRE_ASSIGN(Recipient recipient, passphrase
                                        ? make_recipient(keyring, volume_key, *passphrase)
                                        : make_recipient(keyring.volume_id, volume_key,
                                                         public_key->label, public_key->key));
  for (const Recipient& other : keyring.recipients) {
    if (other.fingerprint == recipient.fingerprint) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("the public key {} is given twice, or is among the recipients "
                              "already",
                              to_hex(recipient.fingerprint).substr(0, 16)));
    }
  }
  keyring.recipients.push_back(std::move(recipient));
  return {};
}

Result<engine::RsaPrivateKey> open_private_key(const PassphraseKeys& keys,
                                               const Recipient& recipient) {
  const auto der = open_secret(keys.sealing(), as_bytes(private_key_aad),
                               recipient.passphrase->sealed_private_key);
  if (!der) return passphrase_does_not_open();
  auto private_key = engine::RsaPrivateKey::from_der(der->view());
  if (!private_key) return passphrase_does_not_open();
  if (private_key->public_key().fingerprint() != recipient.fingerprint) {
    return fail(ErrorCode::tampered, "the public key is not that of the private key");
  }
  return private_key;
}

Result<WrappedEpoch> wrap_epoch(const engine::VolumeId& volume_id, ByteView volume_key,
                                const EpochKey& epoch) {
  WrappedEpoch wrapped{.number = epoch.number, .suite = epoch.suite, .format = epoch.format};
  NACRE_ASSIGN(
      wrapped.wrapped_key,
      seal_secret(epoch_wrapping(volume_id, volume_key).view(),
                  epoch_aad(volume_id, epoch.number, epoch.suite, epoch.format), epoch.key.view()));
  return wrapped;
}

Result<EpochKey> unwrap_epoch(const engine::VolumeId& volume_id, ByteView volume_key,
                              const WrappedEpoch& epoch) {
  auto key =
      open_secret(epoch_wrapping(volume_id, volume_key).view(),
                  epoch_aad(volume_id, epoch.number, epoch.suite, epoch.format), epoch.wrapped_key);
  if (!key) return add_context(key.error(), fmt::format("key of epoch {}", epoch.number));
  return EpochKey{
      .number = epoch.number, .suite = epoch.suite, .key = std::move(*key), .format = epoch.format};
}

Result<Bytes> seal_previous_volume_key(const engine::VolumeId& volume_id, ByteView volume_key,
                                       ByteView previous) {
  return seal_secret(previous_wrapping(volume_id, volume_key).view(), volume_id, previous);
}

Result<SecretBytes> open_previous_volume_key(const engine::VolumeId& volume_id, ByteView volume_key,
                                             ByteView sealed) {
  auto previous = open_secret(previous_wrapping(volume_id, volume_key).view(), volume_id, sealed);
  if (!previous) return add_context(previous.error(), "the volume key before this one");
  return previous;
}

}  // namespace nacre::metadata
