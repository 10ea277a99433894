// SPDX-License-Identifier: Apache-2.0
// Any bytes as a superblock or a keyring (NACRE_FUZZ_KIND). Input: a byte, then, where it is odd,
// a JSON merge patch for a sound one, which then gets a right checksum and MAC: so what lies behind
// the MAC is reached; else the text itself. The sound one is of format 2 where the byte leaves 3
// when it is divided by 4.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "metadata/keys/keyring.h"
#include "metadata/keys/keyring_parts.h"
#include "metadata/superblock.h"
#include "metadata/text/document.h"
#include "metadata/text/text_bytes.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace nacre;
using namespace nacre::metadata;

constexpr std::string_view format_of_superblock = "nacre";
constexpr std::string_view format_of_keyring = "nacre keyring";

const KeyTree& keys() {
  static const KeyTree tree = [] {
    std::vector<EpochKey> epochs;
    epochs.push_back({.number = 1, .key = SecretBytes(Bytes(32, 7))});
    return KeyTree(engine::VolumeId{1, 2, 3}, SecretBytes(Bytes(32, 9)), std::move(epochs));
  }();
  return tree;
}

struct SuperblockKind {
  static std::string sound() {
    return encode_superblock(
        {.volume_id = keys().volume_id(), .label = "label", .created = "2026-01-31T23:59:59Z"},
        keys());
  }
  static std::string sound_2() {
    return encode_superblock(
        {.volume_id = keys().volume_id(), .created = "2026-01-31T23:59:59Z", .has_format_2 = true},
        keys());
  }
  static constexpr std::string_view format = format_of_superblock;
  static constexpr std::string_view subkey = "superblock mac";
  static void read(ByteView text) {
    const auto parsed = parse_superblock(text);
    if (!parsed) return;
    const auto verified = verify_superblock(*parsed, keys());
    if (!verified) return;
    if (!parse_superblock(as_bytes(encode_superblock(*verified, keys())))) std::abort();
  }
};

struct KeyringKind {
  static std::string sound() {
    Recipient said{.label = "said",
                   .created = "2026-01-31T23:59:59Z",
                   .fingerprint = engine::sha256(Bytes(300, 1)),
                   .public_key = Bytes(300, 1),
                   .wrapped_volume_key = Bytes(256, 2),
                   .passphrase = PassphraseLock{.kdf = {.memory_kib = 8192},
                                                .salt = Bytes(16, 3),
                                                .sealed_private_key = Bytes(1200, 4),
                                                .mac = engine::Sha256Digest{}}};
    Recipient bare = said;
    bare.passphrase.reset();
    bare.public_key = Bytes(300, 5);
    bare.fingerprint = engine::sha256(bare.public_key);
    return encode_keyring({.volume_id = keys().volume_id(),
                           .epochs = {{.number = 1, .wrapped_key = Bytes(60, 6)}},
                           .recipients = {said, bare}},
                          keys());
  }
  // With recipients of format 2.
  static std::string sound_2() {
    const auto lock = [](const Bytes& seal) {
      return PassphraseLock{.kdf = {.memory_kib = 8192},
                            .salt = Bytes(16, 3),
                            .check = engine::Sha256Digest{},
                            .sealed_volume_key = seal};
    };
    Recipient sealed{.created = "2026-01-31T23:59:59Z",
                     .fingerprint = passphrase_fingerprint({}, {}),
                     .passphrase = lock(Bytes(60, 7))};
    sealed.passphrase->follows = engine::Sha256Digest{};
    Recipient wrapped = sealed;
    wrapped.passphrase = lock({});
    wrapped.passphrase->sealed_private_key = Bytes(1200, 4);
    wrapped.public_key = Bytes(300, 1);
    wrapped.wrapped_volume_key = Bytes(256, 2);
    wrapped.fingerprint = engine::sha256(wrapped.public_key);
    Recipient other = sealed;
    other.passphrase.reset();
    other.other_kind = OtherKind{.number = 3, .body = Bytes(100, 8)};
    return encode_keyring(
        {.volume_id = keys().volume_id(),
         .epochs = {{.number = 1, .wrapped_key = Bytes(60, 6), .format = EpochFormat::two}},
         .recipients = {sealed, wrapped, other}},
        keys());
  }
  static constexpr std::string_view format = format_of_keyring;
  static constexpr std::string_view subkey = "keyring mac";
  static void read(ByteView text) {
    const auto parsed = parse_keyring(text);
    if (!parsed) return;
    if (!verify(parsed->seal, keys().volume_subkey(subkey).view(), "keyring")) return;
    if (!parse_keyring(as_bytes(encode_keyring(parsed->claims, keys())))) std::abort();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Kind = NACRE_FUZZ_KIND;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    Kind::read(as_bytes(text));
    return 0;
  }
  static const nlohmann::json sound = nlohmann::json::parse(Kind::sound());
  static const nlohmann::json sound_2 = nlohmann::json::parse(Kind::sound_2());
  const auto patch = nlohmann::json::parse(text, nullptr, false);
  if (!patch.is_object()) return 0;
  nlohmann::json fields = data[0] % 4 == 3 ? sound_2 : sound;
  fields.merge_patch(patch);
  fields.erase("mac");
  fields.erase("crc32");
  const DocumentKind kind{.format = Kind::format, .version = 1, .size_bytes_max = 16u << 20};
  Kind::read(as_bytes(write_document(kind, fields, keys().volume_subkey(Kind::subkey).view())));
  return 0;
}
