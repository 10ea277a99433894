// SPDX-License-Identifier: Apache-2.0
// The keyring as a file; keyring_open.cpp opens it.
#include "metadata/keys/keyring.h"

#include <fmt/format.h>

#include <algorithm>

#include "metadata/backing/two_copies.h"
#include "metadata/keys/keyring_parts.h"
#include "metadata/keys/sealed_secret.h"
#include "metadata/text/document.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

using nlohmann::json;

constexpr DocumentKind keyring_kind{
    .format = "nacre keyring", .version = 1, .size_bytes_max = keyring_size_bytes_max};
constexpr std::size_t keyring_name_size_max = 64;
constexpr std::size_t public_key_size_max = 2u << 10;
constexpr std::size_t private_key_size_max = 8u << 10;
constexpr std::size_t salt_size_min = 16;
constexpr std::size_t salt_size_max = 64;
constexpr std::uint32_t lanes_max = 16;

json to_json(const WrappedEpoch& epoch) {
  json fields = {{"number", epoch.number},
                 {"cipher", engine::to_string(epoch.suite)},
                 {"wrapped_key", to_base64(epoch.wrapped_key)}};
  if (epoch.format != EpochFormat::one) fields["format"] = static_cast<unsigned>(epoch.format);
  return fields;
}

json to_json(const Recipient& recipient) {
  json fields = {{"label", recipient.label},
                 {"created", recipient.created},
                 {"fingerprint", to_hex(recipient.fingerprint)}};
  if (const auto& other = recipient.other_kind) {
    fields["kind"] = other->number;
    fields["body"] = to_base64(other->body);
    return fields;
  }
  fields["kind"] = recipient.passphrase ? "passphrase" : "rsa";
  const auto put = [&](const char* name, const Bytes& bytes) {
    if (!bytes.empty()) fields[name] = to_base64(bytes);
  };
  put("public_key", recipient.public_key);
  put("wrapped_volume_key", recipient.wrapped_volume_key);
  if (const auto& lock = recipient.passphrase) {
    fields["kdf"] = {{"name", "argon2id"},
                     {"memory_kib", lock->kdf.memory_kib},
                     {"passes", lock->kdf.passes},
                     {"lanes", lock->kdf.lanes},
                     {"salt", to_base64(lock->salt)}};
    put("private_key", lock->sealed_private_key);
    put("sealed_volume_key", lock->sealed_volume_key);
    if (lock->mac) fields["mac"] = to_hex(*lock->mac);
    if (lock->check) fields["check"] = to_hex(*lock->check);
    if (lock->follows) fields["follows"] = to_hex(*lock->follows);
  }
  return fields;
}

Result<WrappedEpoch> parse_epoch(const json& fields) {
  WrappedEpoch epoch;
  NACRE_ASSIGN(const std::uint64_t number, get_number(fields, "number", 1, UINT32_MAX));
  epoch.number = static_cast<std::uint32_t>(number);
  NACRE_ASSIGN(const std::string cipher, get_text(fields, "cipher", keyring_name_size_max));
  const auto suite = engine::suite_from_name(cipher);
  if (!suite) return fail(ErrorCode::unsupported, suite.error().message);
  epoch.suite = *suite;
  const std::size_t size = engine::key_size_bytes(epoch.suite) + sealed_secret_overhead_bytes;
  NACRE_ASSIGN(epoch.wrapped_key, get_base64(fields, "wrapped_key", size, size));
  if (!fields.contains("format")) return epoch;
  NACRE_ASSIGN(const std::uint64_t format, get_number(fields, "format", 2, UINT8_MAX));
  if (format > static_cast<std::uint64_t>(EpochFormat::two)) {
    return fail(ErrorCode::unsupported,
                fmt::format("this epoch is of format {}, which this Nacre does not have: open the "
                            "volume with a newer one",
                            format));
  }
  epoch.format = EpochFormat::two;
  return epoch;
}

// A cost outside the bounds is never tried: a hostile keyring must not take the machine's memory.
Result<engine::Argon2Parameters> parse_kdf_cost(const json& fields) {
  const auto get = [&](const char* name, std::uint32_t least,
                       std::uint32_t most) -> Result<std::uint32_t> {
    const auto number = get_number(fields, name, least, most);
    if (number) return static_cast<std::uint32_t>(*number);
    return add_context(number.error(),
                       "the cost of the key derivation is outside what Nacre ever writes, so the "
                       "keyring is damaged or was changed");
  };
  engine::Argon2Parameters cost = {};
  NACRE_ASSIGN(cost.memory_kib,
               get("memory_kib", engine::argon2_memory_kib_min, engine::argon2_memory_kib_max));
  NACRE_ASSIGN(cost.passes, get("passes", 1, engine::argon2_passes_max));
  NACRE_ASSIGN(cost.lanes, get("lanes", 1, lanes_max));
  return cost;
}

Result<PassphraseLock> parse_kdf(const json& fields) {
  const auto kdf = fields.find("kdf");
  if (kdf == fields.end() || !kdf->is_object()) {
    return fail(ErrorCode::corrupt, "the field \"kdf\" is missing");
  }
  NACRE_ASSIGN(const std::string name, get_text(*kdf, "name", keyring_name_size_max));
  if (name != "argon2id") {
    return fail(ErrorCode::unsupported, fmt::format("unknown key derivation \"{}\"", name));
  }
  PassphraseLock lock;
  NACRE_ASSIGN(lock.kdf, parse_kdf_cost(*kdf));
  NACRE_ASSIGN(lock.salt, get_base64(*kdf, "salt", salt_size_min, salt_size_max));
  return lock;
}

Result<Bytes> parse_private_key(const json& fields) {
  return get_base64(fields, "private_key", sealed_secret_overhead_bytes, private_key_size_max);
}

Result<void> parse_public_key(Recipient& recipient, const json& fields) {
  NACRE_ASSIGN(recipient.public_key, get_base64(fields, "public_key", 1, public_key_size_max));
  return {};
}

Result<void> parse_wrapped_key(Recipient& recipient, const json& fields) {
  NACRE_ASSIGN(
      recipient.wrapped_volume_key,
      get_base64(fields, "wrapped_volume_key", engine::rsa_bits_min / 8, engine::rsa_bits_max / 8));
  return {};
}

// A passphrase's recipient of format 2: the volume key is sealed, or wrapped for its key pair, but
// never both.
Result<void> parse_sealed_recipient(Recipient& recipient, const json& fields) {
  NACRE_ASSIGN(PassphraseLock lock, parse_kdf(fields));
  NACRE_TRY(get_hex(fields, "check", lock.check.emplace()));
  const bool has_key_pair = fields.contains("public_key");
  const bool is_sealed = fields.contains("sealed_volume_key");
  if (fields.contains("mac") || has_key_pair != fields.contains("private_key") ||
      is_sealed == fields.contains("wrapped_volume_key") || (!is_sealed && !has_key_pair) ||
      (!is_sealed && fields.contains("follows"))) {
    return fail(ErrorCode::corrupt, "the fields of this recipient do not belong together");
  }
  if (has_key_pair) {
    NACRE_TRY(parse_public_key(recipient, fields));
    NACRE_ASSIGN(lock.sealed_private_key, parse_private_key(fields));
  }
  if (is_sealed) {
    constexpr std::size_t size = volume_key_size_bytes + sealed_secret_overhead_bytes;
    NACRE_ASSIGN(lock.sealed_volume_key, get_base64(fields, "sealed_volume_key", size, size));
    if (fields.contains("follows")) NACRE_TRY(get_hex(fields, "follows", lock.follows.emplace()));
  } else {
    NACRE_TRY(parse_wrapped_key(recipient, fields));
  }
  if (passphrase_fingerprint(*lock.check, recipient.public_key) != recipient.fingerprint) {
    return fail(ErrorCode::corrupt, "the fingerprint is not that of the passphrase");
  }
  recipient.passphrase = std::move(lock);
  return {};
}

// A recipient with a key pair: RSA alone, or a passphrase of format 1.
Result<void> parse_rsa_recipient(Recipient& recipient, const json& fields, bool has_passphrase) {
  NACRE_TRY(parse_public_key(recipient, fields));
  if (engine::sha256(recipient.public_key) != recipient.fingerprint) {
    return fail(ErrorCode::corrupt, "the fingerprint is not that of the public key");
  }
  NACRE_TRY(parse_wrapped_key(recipient, fields));
  if (!has_passphrase) return {};
  NACRE_ASSIGN(PassphraseLock lock, parse_kdf(fields));
  NACRE_ASSIGN(lock.sealed_private_key, parse_private_key(fields));
  if (fields.contains("mac")) NACRE_TRY(get_hex(fields, "mac", lock.mac.emplace()));
  recipient.passphrase = std::move(lock);
  return {};
}

// A recipient of a kind that another version knows. It is kept whole, so it may have no field that
// would be dropped.
Result<void> parse_other_kind(Recipient& recipient, const json& fields) {
  OtherKind other;
  NACRE_ASSIGN(const std::uint64_t number,
               get_number(fields, "kind", recipient_kind_min, UINT16_MAX));
  other.number = static_cast<std::uint16_t>(number);
  NACRE_ASSIGN(other.body, get_base64(fields, "body", 0, recipient_body_size_max));
  if (fields.size() != 5) {
    return fail(ErrorCode::corrupt, "a recipient of a kind with a number has a field too many");
  }
  recipient.other_kind = std::move(other);
  return {};
}

Result<Recipient> parse_recipient(const json& fields, bool is_format_2) {
  Recipient recipient;
  NACRE_ASSIGN(recipient.label, get_line(fields, "label", label_size_bytes_max));
  NACRE_ASSIGN(recipient.created, get_line(fields, "created", keyring_name_size_max));
  NACRE_TRY(get_hex(fields, "fingerprint", recipient.fingerprint));
  const auto kind = fields.find("kind");
  if (is_format_2 && kind != fields.end() && kind->is_number()) {
    NACRE_TRY(parse_other_kind(recipient, fields));
    return recipient;
  }
  NACRE_ASSIGN(const std::string kind_name, get_text(fields, "kind", keyring_name_size_max));
  const bool has_passphrase = kind_name == "passphrase";
  if (!has_passphrase && kind_name != "rsa") {
    return fail(ErrorCode::unsupported, fmt::format("unknown kind of recipient \"{}\"", kind_name));
  }
  if (!is_format_2 && fields.contains("check")) {
    return fail(ErrorCode::corrupt, "a keyring of format 1 has a passphrase of format 2");
  }
  NACRE_TRY(has_passphrase && fields.contains("check")
                ? parse_sealed_recipient(recipient, fields)
                : parse_rsa_recipient(recipient, fields, has_passphrase));
  return recipient;
}

template <typename T>
Result<T> entry(Result<T> parsed, const char* what, std::size_t index) {
  if (parsed) return parsed;
  return add_context(parsed.error(), fmt::format("{} {}", what, index + 1));
}

Result<Keyring> parse_keyring(const Document& document) {
  const json& fields = document.fields;
  Keyring keyring{.generation = document.generation};
  NACRE_TRY(get_hex(fields, "volume_id", keyring.volume_id));
  NACRE_ASSIGN(const json* epochs, get_array(fields, "epochs", 1, epoch_count_max));
  for (const json& epoch : *epochs) {
    NACRE_ASSIGN(WrappedEpoch parsed, entry(parse_epoch(epoch), "epoch", keyring.epochs.size()));
    if (!keyring.epochs.empty() && parsed.format < keyring.epochs.back().format) {
      return fail(ErrorCode::corrupt, "an epoch has an older format than the one before it");
    }
    if (!keyring.epochs.empty() && parsed.number <= keyring.epochs.back().number) {
      return fail(ErrorCode::corrupt, "the epochs are not in order");
    }
    keyring.epochs.push_back(std::move(parsed));
  }
  NACRE_ASSIGN(const json* recipients, get_array(fields, "recipients", 1, recipient_count_max));
  std::size_t passphrase_count = 0;
  for (const json& recipient : *recipients) {
    NACRE_ASSIGN(Recipient parsed, entry(parse_recipient(recipient, is_of_format_2(keyring)),
                                         "recipient", keyring.recipients.size()));
    if (parsed.passphrase && ++passphrase_count > passphrase_count_max) {
      return fail(ErrorCode::corrupt,
                  fmt::format("there are more than {} passphrases", passphrase_count_max));
    }
    keyring.recipients.push_back(std::move(parsed));
  }
  if (fields.contains("previous_volume_key")) {
    constexpr std::size_t size = volume_key_size_bytes + sealed_secret_overhead_bytes;
    NACRE_ASSIGN(keyring.sealed_previous_volume_key,
                 get_base64(fields, "previous_volume_key", size, size));
  }
  if (fields.contains("previous_superblock")) {
    NACRE_TRY(get_hex(fields, "previous_superblock", keyring.previous_superblock.emplace()));
  }
  if (is_of_format_2(keyring) && !keyring.sealed_previous_volume_key.empty() &&
      !keyring.previous_superblock) {
    return fail(ErrorCode::corrupt, "a rotation of keys does not say which superblock counts");
  }
  return keyring;
}

}  // namespace

bool is_of_format_2(const Keyring& keyring) {
  return !keyring.epochs.empty() && keyring.epochs.back().format == EpochFormat::two;
}

bool is_confirmed(const Recipient& recipient) {
  if (!recipient.passphrase) return true;
  const PassphraseLock& lock = *recipient.passphrase;
  return lock.check ? !lock.sealed_volume_key.empty() : lock.mac.has_value();
}

std::string encode_keyring(const Keyring& keyring, const KeyTree& keys) {
  json epochs = json::array();
  for (const WrappedEpoch& epoch : keyring.epochs)
    epochs.push_back(to_json(epoch));
  json recipients = json::array();
  for (const Recipient& recipient : keyring.recipients)
    recipients.push_back(to_json(recipient));
  json fields = {{"generation", keyring.generation},
                 {"volume_id", to_hex(keyring.volume_id)},
                 {"epochs", std::move(epochs)},
                 {"recipients", std::move(recipients)}};
  if (!keyring.sealed_previous_volume_key.empty()) {
    fields["previous_volume_key"] = to_base64(keyring.sealed_previous_volume_key);
  }
  if (keyring.previous_superblock) {
    fields["previous_superblock"] = to_hex(*keyring.previous_superblock);
  }
  return write_document(keyring_kind, fields, keys.volume_subkey("keyring mac").view());
}

Result<Unverified<Keyring>> parse_keyring(ByteView text) {
  NACRE_ASSIGN(Document document, parse_document(keyring_kind, text));
  NACRE_ASSIGN(Keyring keyring, parse_keyring(document));
  return Unverified<Keyring>{std::move(keyring), std::move(document.seal)};
}

Result<FoundKeyring> find_keyring(BackingDirectory& directory) {
  const auto generation_of = [](ByteView text) -> Result<std::uint64_t> {
    NACRE_ASSIGN(const auto parsed, parse_keyring(text));
    return parsed.claims.generation;
  };
  auto found = read_copies(directory, keyring_file, keyring_kind.size_bytes_max, generation_of);
  if (!found && found.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::missing,
                fmt::format("{}: both copies of the keyring are missing, and without one nobody "
                            "can open the volume: 'nacre key restore' puts one back from a backup",
                            directory.description()));
  }
  if (!found) return tl::unexpected(found.error());
  ChosenCopy chosen = std::move(*found);
  NACRE_ASSIGN(auto keyring, parse_keyring(chosen.text));
  const bool is_torn =
      std::any_of(chosen.warnings.begin(), chosen.warnings.end(),
                  [](const Error& warning) { return warning.code == ErrorCode::rolled_back; });
  return FoundKeyring{std::move(keyring), std::move(chosen.warnings), is_torn,
                      std::move(chosen.text)};
}

Result<void> save_keyring(BackingDirectory& directory, const Keyring& keyring,
                          const KeyTree& keys) {
  NACRE_TRY(check_generation(keyring.generation, "keyring"));
  return write_copies(directory, keyring_file, encode_keyring(keyring, keys));
}

}  // namespace nacre::metadata
