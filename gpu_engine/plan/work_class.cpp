// SPDX-License-Identifier: Apache-2.0
// The class of a message.
#include "gpu_engine/plan/work_class.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {
namespace {

constexpr std::array<std::string_view, work_kind_count> kind_names = {
    "seal",         "unseal",      "compress",         "decompress", "seal-hmac",
    "unseal-hmac",  "reseal",      "reseal-hmac",      "checksum",   "crypt",
    "crypt-serial", "crypt-des",   "crypt-des-serial", "crypt-hmac", "rsa-private",
    "rsa-public",   "rsa-generate"};

bool has_hmac(const Payload& payload, std::uint32_t key_index) {
  if (key_index >= payload.key_table.size()) return false;
  const KeyUse& use = payload.key_table[key_index].use;
  return use.kind == KeyKind::suite && construction(use.suite) != SuiteConstruction::gcm;
}

std::size_t place_of(Codec codec) {
  const auto at = std::ranges::find(costed_codecs, codec);
  return static_cast<std::size_t>(at - costed_codecs.begin()) % costed_codecs.size();
}

// auto takes gdeflate for most bytes. zstd, which devices only decode, is as fast as gdeflate
// there, on devices and on the cpu.
Codec costed_as(Codec codec) {
  return std::ranges::find(costed_codecs, codec) == costed_codecs.end() ? Codec::gdeflate : codec;
}

Codec codec_of_record(const Message& message, Codec record_codec) {
  if (message.input_size >= message.output_capacity) return Codec::none;
  return costed_as(message.codec == Codec::none ? record_codec : message.codec);
}

WorkKind crypt_kind(const Payload& payload, const Message& message) {
  if (has_hmac(payload, message.key_index)) return WorkKind::crypt_hmac;
  if (message.key_index >= payload.key_table.size()) return WorkKind::crypt;
  const KeyUse& use = payload.key_table[message.key_index].use;
  const Direction direction =
      message.operation == Operation::encrypt ? Direction::encrypt : Direction::decrypt;
  if (use.kind != KeyKind::block_cipher) return WorkKind::crypt;
  const bool serial = is_serial(use.mode, direction);
  if (use.cipher == BlockCipher::des || use.cipher == BlockCipher::des_ede3)
    return serial ? WorkKind::crypt_des_serial : WorkKind::crypt_des;
  return serial ? WorkKind::crypt_serial : WorkKind::crypt;
}

std::uint64_t scale_by_bits(std::uint64_t bytes, std::uint64_t bits, int power) {
  const double scaled =
      static_cast<double>(bytes) * std::pow(static_cast<double>(bits) / rsa_bits_min, power);
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(scaled), 1);
}

}  // namespace

std::size_t index_of(WorkClass work) {
  const auto kind = static_cast<std::size_t>(work.kind);
  if (has_codec(work.kind)) return kind * costed_codecs.size() + place_of(work.codec);
  return coded_kind_count * costed_codecs.size() + kind - coded_kind_count;
}

WorkClass work_class_at(std::size_t index) {
  constexpr std::size_t coded = coded_kind_count * costed_codecs.size();
  if (index < coded)
    return {static_cast<WorkKind>(index / costed_codecs.size()),
            costed_codecs[index % costed_codecs.size()]};
  return {static_cast<WorkKind>(index - coded + coded_kind_count), Codec::none};
}

std::string to_string(WorkClass work) {
  std::string name(kind_names[static_cast<std::size_t>(work.kind)]);
  if (has_codec(work.kind)) name.append(" ").append(to_string(work.codec));
  return name;
}

WorkClass class_of(const Payload& payload, const Message& message, Codec record_codec) {
  const bool hmac = has_hmac(payload, message.key_index);
  switch (message.operation) {
    case Operation::seal:
      return {hmac ? WorkKind::seal_hmac : WorkKind::seal, costed_as(message.codec)};
    case Operation::unseal:
      return {hmac ? WorkKind::unseal_hmac : WorkKind::unseal,
              codec_of_record(message, record_codec)};
    case Operation::reseal:
      return {hmac || has_hmac(payload, message.new_key_index) ? WorkKind::reseal_hmac
                                                               : WorkKind::reseal};
    case Operation::compress:
      return {WorkKind::compress, costed_as(message.codec)};
    case Operation::decompress:
      return {WorkKind::decompress, costed_as(message.codec)};
    case Operation::checksum:
      return {WorkKind::checksum};
    case Operation::rsa_private:
      return {WorkKind::rsa_private};
    case Operation::rsa_public:
      return {WorkKind::rsa_public};
    case Operation::rsa_generate:
      return {WorkKind::rsa_generate};
    case Operation::encrypt:
    case Operation::decrypt:
      break;
  }
  return {crypt_kind(payload, message)};
}

std::uint64_t size_of(const Message& message) {
  // The modulus is as long as the input, or, where the input is padded, as long as the output.
  const std::uint64_t modulus_bits =
      8 * std::min<std::uint64_t>(message.operation == Operation::rsa_private
                                      ? message.input_size
                                      : message.output_capacity,
                                  rsa_bits_max / 8);
  switch (message.operation) {
    case Operation::rsa_private:
      return scale_by_bits(rsa_private_bytes, modulus_bits, 3);
    case Operation::rsa_public:
      return scale_by_bits(rsa_public_bytes, modulus_bits, 2);
    case Operation::rsa_generate:
      return scale_by_bits(rsa_generate_bytes,
                           std::min<std::uint64_t>(message.rsa_bits, rsa_bits_max), 4);
    default:
      break;
  }
  const bool opens =
      message.operation == Operation::unseal || message.operation == Operation::decompress;
  return opens ? message.output_capacity : message.input_size;
}

}  // namespace nacre::engine
