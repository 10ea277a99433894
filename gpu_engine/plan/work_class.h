// SPDX-License-Identifier: Apache-2.0
// Which messages cost alike: by operation, by codec, and by whether a device gives a message to a
// single thread.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu_engine/payload.h"

namespace nacre::engine {

enum class WorkKind : std::uint8_t {
  // Each codec is a class of its own for these.
  seal,
  unseal,
  compress,
  decompress,
  // These two use a suite with HMAC: on a device one thread hashes a whole message.
  seal_hmac,
  unseal_hmac,
  // The kinds from here on are one class each.
  reseal,
  reseal_hmac,  // from or to a suite with HMAC
  checksum,
  crypt,
  crypt_serial,  // a block cipher's serial modes
  // Bare DES and 3DES: on the cpu they cost some thirty times as much as AES. Under a suite they
  // count as AES.
  crypt_des,
  crypt_des_serial,
  crypt_hmac,
  rsa_private,
  rsa_public,
  rsa_generate,
};
inline constexpr std::size_t work_kind_count = 17;
inline constexpr std::size_t coded_kind_count = 6;

// The codecs with classes of their own: those that devices have.
inline constexpr std::array costed_codecs = {Codec::none, Codec::lz77,     Codec::rle,
                                             Codec::lzw,  Codec::gdeflate, Codec::huffman};

struct WorkClass {
  WorkKind kind = WorkKind::seal;
  Codec codec = Codec::none;  // one of costed_codecs; none where the kind has no codec
  bool operator==(const WorkClass&) const = default;
};
inline constexpr std::size_t work_class_count =
    coded_kind_count * costed_codecs.size() + work_kind_count - coded_kind_count;
using WorkClasses = std::bitset<work_class_count>;  // by index_of()

constexpr bool has_codec(WorkKind kind) {
  return static_cast<std::size_t>(kind) < coded_kind_count;
}
// Less than work_class_count, and each class its own; work_class_at() is the reverse.
std::size_t index_of(WorkClass work);
WorkClass work_class_at(std::size_t index);
// "seal lz77", "checksum".
std::string to_string(WorkClass work);

// The class of a message that both backends can run. The choice of Codec::automatic is not known
// before the bytes are looked at, so it counts as gdeflate, its choice for most bytes that get
// smaller. The codec of a record is known only when the record is open. A record that is no shorter
// than its plain bytes counts as codec none. Any other counts as Message::codec, or as record_codec
// where Message::codec is none.
WorkClass class_of(const Payload& payload, const Message& message,
                   Codec record_codec = Codec::lz77);

// How many bytes an operation of 2,048 bits counts as, so that costs by size apply to RSA too:
// measured payloads have 128 to 8,192 private operations, and 2 to 128 new keys.
inline constexpr std::uint64_t rsa_private_bytes = 8u << 10;
inline constexpr std::uint64_t rsa_public_bytes = 512;
inline constexpr std::uint64_t rsa_generate_bytes = 512u << 10;

// The number of plain bytes that a message counts as. For RSA the number grows as the work does:
// with the square of the modulus's length, for private operations with its cube, for new keys with
// its fourth power.
std::uint64_t size_of(const Message& message);

}  // namespace nacre::engine
