// SPDX-License-Identifier: Apache-2.0
// Which messages a device can run.
#include "gpu_engine/plan/message_kind.h"

#include <algorithm>
#include <optional>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/plan/device_codecs.h"
#include "gpu_engine/plan/work_class.h"
#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/record/record.h"

namespace nacre::engine {
namespace {

bool lies_within(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

bool has_key(const Payload& payload, std::uint32_t index, KeyKind kind) {
  if (index >= payload.key_table.size()) return false;
  const Payload::Key& key = payload.key_table[index];
  if (key.use.kind != kind) return false;
  if (kind == KeyKind::suite ? !suite_from_number(static_cast<std::uint8_t>(key.use.suite))
                             : !is_known(key.use.cipher, key.use.mode))
    return false;
  return key.size ==
         (kind == KeyKind::suite ? key_size_bytes(key.use.suite) : key_size_bytes(key.use.cipher));
}

CryptMode mode_of(CipherMode mode) {
  switch (mode) {
    case CipherMode::ecb:
      return CryptMode::ecb;
    case CipherMode::cbc:
      return CryptMode::cbc;
    case CipherMode::ofb:
      return CryptMode::ofb;
    case CipherMode::ctr:
      return CryptMode::ctr;
  }
  return CryptMode::ctr;
}

bool device_decodes(Codec codec, std::uint64_t plain_size) {
  if (codec == Codec::none) return true;
  const DeviceCodec* const found = find_device_codec(codec);
  return found != nullptr && plain_size <= found->plain_size_max;
}

bool device_encodes(Codec codec, int level) {
  if (codec == Codec::none) return level >= 0 && level <= codec_level_max;
  if (codec == Codec::automatic) {
    if (level < 0 || level > codec_level_max) return false;
    const auto choice = automatic_choice(level);
    return choice && device_encodes(choice->codec, choice->level);
  }
  const DeviceCodec* const found = find_device_codec(codec);
  return found != nullptr && level >= found->encode_level_min && level <= found->encode_level_max;
}

std::optional<BatchKind> find_record_kind(const Payload& payload, const Message& message) {
  if (!has_key(payload, message.key_index, KeyKind::suite)) return std::nullopt;
  const CipherSuite suite = payload.key_table[message.key_index].use.suite;
  BatchKind kind = {.operation = message.operation,
                    .form = form_of(suite),
                    .family = family_of(block_cipher(suite))};
  if (message.operation == Operation::seal) {
    if (!device_encodes(message.codec, message.level) ||
        message.input_size > chunk_size_bytes_max ||
        message.output_capacity < record_size_bound(suite, message.padding, message.input_size))
      return std::nullopt;
    kind.codec = message.codec;
    if (message.codec != Codec::none) kind.level = message.level;
    return kind;
  }
  // A device would open the record and could not decode it; the cpu would then open it again.
  if (message.operation == Operation::unseal && codec_is_available(message.codec) &&
      !device_decodes(message.codec, 0))
    return std::nullopt;
  if (message.input_size < record_size_bytes_min || message.input_size > record_size_bytes_max)
    return std::nullopt;
  if (message.operation == Operation::reseal) {
    if (!has_key(payload, message.new_key_index, KeyKind::suite)) return std::nullopt;
    const CipherSuite new_suite = payload.key_table[message.new_key_index].use.suite;
    // The keys of a batch lie in one table, of one family.
    if (family_of(block_cipher(new_suite)) != kind.family) return std::nullopt;
    kind.new_form = form_of(new_suite);
  }
  return kind;
}

// Bare codecs and checksums.
std::optional<BatchKind> find_plain_kind(const Message& message) {
  BatchKind kind = {.operation = message.operation};
  switch (message.operation) {
    case Operation::compress:
      if (!device_encodes(message.codec, message.level)) return std::nullopt;
      kind.codec = message.codec;
      if (message.codec != Codec::none) kind.level = message.level;
      return kind;
    case Operation::decompress:
      if (!device_decodes(message.codec, message.output_capacity)) return std::nullopt;
      kind.codec = message.codec;
      return kind;
    case Operation::checksum:
      if (message.checksum != Checksum::crc32 && message.checksum != Checksum::crc32c)
        return std::nullopt;
      kind.checksum = message.checksum;
      return kind;
    default:
      return std::nullopt;
  }
}

std::optional<BatchKind> find_crypt_kind(const Payload& payload, const Message& message) {
  const bool encrypts = message.operation == Operation::encrypt;
  if (has_key(payload, message.key_index, KeyKind::block_cipher)) {
    const KeyUse& use = payload.key_table[message.key_index].use;
    if (message.output_capacity < message.input_size ||
        (takes_whole_blocks(use.mode) && message.input_size % block_size_bytes(use.cipher) != 0))
      return std::nullopt;
    return BatchKind{.operation = message.operation,
                     .form = KeyForm::block_cipher,
                     .family = family_of(use.cipher),
                     .mode = mode_of(use.mode),
                     .direction = encrypts ? CryptDirection::encrypt : CryptDirection::decrypt};
  }
  if (!has_key(payload, message.key_index, KeyKind::suite)) return std::nullopt;
  const CipherSuite suite = payload.key_table[message.key_index].use.suite;
  const std::size_t tag_size = tag_size_bytes(suite);
  if (!encrypts && message.input_size < tag_size) return std::nullopt;
  const std::uint64_t size = encrypts ? message.input_size : message.input_size - tag_size;
  if (size % plain_unit_bytes(suite) != 0 ||
      !is_valid_nonce(suite, ByteView(message.iv).first(nonce_size_bytes)) ||
      message.output_capacity < size + (encrypts ? tag_size : 0))
    return std::nullopt;
  return BatchKind{.operation = message.operation,
                   .form = form_of(suite),
                   .family = family_of(block_cipher(suite))};
}

// The kind, as far as numbers and kinds of keys show it. Other faults are found when keys are
// opened.
std::optional<BatchKind> find_rsa_kind(const Payload& payload, const Message& message) {
  constexpr std::uint64_t size_min = rsa_message_bits_min / 8;
  constexpr std::uint64_t size_max = rsa_device_bits_max / 8;
  BatchKind kind = {.operation = message.operation};
  if (message.operation == Operation::rsa_generate) {
    if (message.rsa_bits < rsa_message_bits_min || message.rsa_bits > rsa_device_bits_max ||
        message.rsa_bits % 2 != 0 ||
        message.output_capacity < rsa_private_key_size_bound(static_cast<int>(message.rsa_bits)))
      return std::nullopt;
    kind.rsa_bits = message.rsa_bits;
    return kind;
  }
  const bool is_private = message.operation == Operation::rsa_private;
  const bool oaep = message.rsa_padding == RsaPadding::oaep_sha256;
  if ((message.rsa_padding != RsaPadding::none && !oaep) ||
      message.key_index >= payload.key_table.size())
    return std::nullopt;
  const Payload::Key& key = payload.key_table[message.key_index];
  if ((key.use.kind != KeyKind::rsa_private &&
       (is_private || key.use.kind != KeyKind::rsa_public)) ||
      key.size > rsa_private_key_size_bound(rsa_device_bits_max))
    return std::nullopt;
  const bool wraps = oaep && !is_private;
  if (message.input_size > size_max || (!wraps && message.input_size < size_min) ||
      (!(oaep && is_private) && message.output_capacity < size_min))
    return std::nullopt;
  return kind;
}

}  // namespace

KeyForm form_of(CipherSuite suite) {
  switch (construction(suite)) {
    case SuiteConstruction::gcm:
      return KeyForm::gcm;
    case SuiteConstruction::ctr_hmac:
      return KeyForm::ctr_hmac;
    case SuiteConstruction::cbc_hmac:
      return KeyForm::cbc_hmac;
  }
  return KeyForm::gcm;
}

CodecChoice encoder_of(const BatchKind& kind) {
  if (kind.codec != Codec::automatic) return {kind.codec, kind.level};
  return automatic_choice(kind.level).value_or(CodecChoice{Codec::none, kind.level});
}

CipherFamily family_of(BlockCipher cipher) {
  if (cipher == BlockCipher::des) return CipherFamily::des;
  return cipher == BlockCipher::des_ede3 ? CipherFamily::des_ede3 : CipherFamily::aes;
}

bool is_serial_cipher(const BatchKind& kind) {
  return (kind.operation == Operation::encrypt || kind.operation == Operation::decrypt) &&
         kind.form == KeyForm::block_cipher &&
         (kind.mode == CryptMode::ofb ||
          (kind.mode == CryptMode::cbc && kind.direction == CryptDirection::encrypt));
}

bool has_serial_hash(const BatchKind& kind) {
  return kind.form == KeyForm::ctr_hmac || kind.form == KeyForm::cbc_hmac;
}

std::uint64_t batch_weight(const Message& message) {
  constexpr std::uint64_t overhead = 256;
  if (is_rsa(message.operation)) return rsa_weight_bytes;
  if (message.operation == Operation::checksum) return message.input_size + overhead;
  const std::uint64_t output =
      message.operation == Operation::unseal
          ? std::min<std::uint64_t>(message.output_capacity, chunk_size_bytes_max)
          : message.output_capacity;
  const bool shortens =
      message.operation == Operation::seal || message.operation == Operation::compress ||
      message.operation == Operation::reseal || message.operation == Operation::encrypt ||
      message.operation == Operation::decrypt;
  return std::max(message.input_size, shortens ? message.input_size : output) + overhead;
}

namespace {

bool lies_in_arenas(const Payload& payload, const Message& message) {
  return lies_within(message.input_offset, message.input_size, payload.input_size) &&
         lies_within(message.aad_offset, message.aad_size, payload.input_size) &&
         lies_within(message.output_offset, message.output_capacity, payload.output_size);
}

// The kind of a message that lies in the arenas.
std::optional<BatchKind> find_kind(const Payload& payload, const Message& message) {
  switch (message.operation) {
    case Operation::seal:
    case Operation::unseal:
    case Operation::reseal:
      return find_record_kind(payload, message);
    case Operation::encrypt:
    case Operation::decrypt:
      return find_crypt_kind(payload, message);
    case Operation::rsa_public:
    case Operation::rsa_private:
    case Operation::rsa_generate:
      return find_rsa_kind(payload, message);
    default:
      return find_plain_kind(message);
  }
}

// Whether message agrees with other, which is of that kind, in everything that find_kind() looks
// at. Neighbours nearly always agree, so a payload of thousands costs one comparison a message.
bool is_like(const Message& message, const Message& other, const BatchKind& kind) {
  if (message.operation != other.operation || message.key_index != other.key_index ||
      message.codec != other.codec || message.level != other.level)
    return false;
  switch (message.operation) {
    case Operation::seal:
      return message.input_size == other.input_size && message.padding == other.padding &&
             message.output_capacity == other.output_capacity;
    case Operation::unseal:
    case Operation::reseal:
      return message.input_size >= record_size_bytes_min &&
             message.input_size <= record_size_bytes_max &&
             message.new_key_index == other.new_key_index;
    case Operation::checksum:
      return message.checksum == other.checksum;
    case Operation::compress:
      return true;
    case Operation::decompress:
      return device_decodes(message.codec, message.output_capacity);
    case Operation::encrypt:
    case Operation::decrypt:
      // A suite of DES may refuse a nonce.
      return (kind.form == KeyForm::block_cipher || kind.family == CipherFamily::aes) &&
             message.input_size == other.input_size &&
             message.output_capacity == other.output_capacity;
    default:
      return false;
  }
}

}  // namespace

Sorted sort_by_kind(const Payload& payload, MessageIndexes indexes, std::uint64_t size_max) {
  Sorted sorted;
  const Message* last = nullptr;  // the last message that has a kind: that of groups[last_group]
  std::size_t last_group = 0;
  for (const std::uint32_t index : indexes) {
    const Message& message = payload.messages[index];
    const std::uint64_t weight = batch_weight(message) + message.aad_size;
    if (!lies_in_arenas(payload, message) || message.aad_size > size_max || weight > size_max) {
      sorted.rest.push_back(index);
      continue;
    }
    if (last == nullptr || !is_like(message, *last, sorted.groups[last_group].kind)) {
      const auto kind = find_kind(payload, message);
      if (!kind) {
        sorted.rest.push_back(index);
        continue;
      }
      auto at = std::ranges::find(sorted.groups, *kind, &KindGroup::kind);
      if (at == sorted.groups.end()) {
        at = sorted.groups.insert(at, KindGroup{.kind = *kind});
        // Often there is only one group.
        if (sorted.groups.size() == 1) {
          at->indexes.reserve(indexes.size());
          at->weights.reserve(indexes.size());
        }
      }
      last = &message;
      last_group = static_cast<std::size_t>(at - sorted.groups.begin());
    }
    KindGroup& group = sorted.groups[last_group];
    group.indexes.push_back(index);
    group.weights.push_back(static_cast<std::uint32_t>(weight));
    group.input_bytes += message.input_size;
  }
  return sorted;
}

std::optional<Alike> find_alike(const Payload& payload) {
  const std::size_t count = payload.messages.size();
  if (count < alike_count_min) return std::nullopt;
  Alike alike;
  const Message* last = nullptr;
  std::uint64_t sum = 0;
  std::uint64_t shortest = UINT64_MAX;
  for (std::size_t i = 0; i < alike_sample_count; ++i) {
    const Message& message = payload.messages[i * (count - 1) / (alike_sample_count - 1)];
    if (!lies_in_arenas(payload, message) ||
        batch_weight(message) + message.aad_size > alike_weight_max)
      return std::nullopt;
    if (last == nullptr || !is_like(message, *last, alike.kind)) {
      const auto kind = find_kind(payload, message);
      if (!kind || (last != nullptr && !(*kind == alike.kind))) return std::nullopt;
      alike.kind = *kind;
    }
    last = &message;
    const std::uint64_t size = size_of(message);
    sum += size;
    shortest = std::min(shortest, size);
    alike.size_longest = std::max(alike.size_longest, size);
  }
  if (is_rsa(alike.kind.operation) || is_serial_cipher(alike.kind) || has_serial_hash(alike.kind))
    return std::nullopt;
  alike.has_one_size = shortest == alike.size_longest;
  alike.size_bytes = sum / alike_sample_count;
  return alike;
}

void keep_first(KindGroup& group, std::size_t count, const Payload& payload) {
  if (count == 0) {
    group = {.kind = group.kind};
    return;
  }
  for (std::size_t i = count; i < group.indexes.size(); ++i)
    group.input_bytes -= payload.messages[group.indexes[i]].input_size;
  group.indexes.resize(count);
  group.weights.resize(count);
}

}  // namespace nacre::engine
