// SPDX-License-Identifier: Apache-2.0
#include "metadata/superblock.h"

#include <fmt/format.h>

#include <bit>

#include "metadata/backing/two_copies.h"
#include "metadata/text/document.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

using nlohmann::json;

constexpr DocumentKind superblock_kind{
    .format = "nacre", .version = 1, .size_bytes_max = 64u << 10};
constexpr std::size_t name_size_max = 64;
constexpr std::size_t feature_count_max = 64;

constexpr std::string_view mac_purpose = "superblock mac";

SecretBytes mac_key(const KeyTree& keys) {
  return keys.volume_subkey(mac_purpose);
}

Result<std::vector<std::string>> parse_features(const json& features, const char* name) {
  NACRE_ASSIGN(const json* list, get_array(features, name, 0, feature_count_max));
  std::vector<std::string> names;
  for (const json& feature : *list) {
    if (!feature.is_string() || feature.get_ref<const std::string&>().size() > name_size_max) {
      return fail(ErrorCode::corrupt, fmt::format("the list of {} features is malformed", name));
    }
    names.push_back(feature.get<std::string>());
  }
  return names;
}

// A name that this build does not know comes from a later version, since the CRC-32 is right.
template <typename T>
Result<T> known(Result<T> named, const char* field, const std::string& name) {
  if (named) return named;
  return fail(ErrorCode::unsupported,
              fmt::format("the volume uses the {} \"{}\", which this Nacre does not have: open it "
                          "with a newer one",
                          field, name));
}

Result<void> parse_features_into(Superblock& superblock, const json& fields) {
  const auto features = fields.find("features");
  if (features == fields.end() || !features->is_object()) {
    return fail(ErrorCode::corrupt, "the field \"features\" is missing");
  }
  NACRE_ASSIGN(superblock.compatible_features, parse_features(*features, "compatible"));
  NACRE_ASSIGN(superblock.read_only_features, parse_features(*features, "read_only_compatible"));
  NACRE_ASSIGN(const auto incompatible, parse_features(*features, "incompatible"));
  for (const std::string& name : incompatible) {
    if (name != format_2_feature) {
      return fail(ErrorCode::unsupported,
                  fmt::format("the volume uses the feature \"{}\", which this Nacre does not "
                              "have: open it with a newer one",
                              name));
    }
    superblock.has_format_2 = true;
  }
  return {};
}

Result<Superblock> parse_superblock_fields(const Document& document) {
  const json& fields = document.fields;
  Superblock superblock{.generation = document.generation};
  NACRE_TRY(parse_features_into(superblock, fields));
  NACRE_TRY(get_hex(fields, "volume_id", superblock.volume_id));
  NACRE_ASSIGN(superblock.label, get_line(fields, "label", label_size_bytes_max));
  NACRE_ASSIGN(superblock.created, get_line(fields, "created", name_size_max));
  NACRE_ASSIGN(const std::uint64_t chunk_size,
               get_number(fields, "chunk_size_bytes", chunk_size_bytes_min, chunk_size_bytes_max));
  if (!std::has_single_bit(chunk_size)) {
    return fail(ErrorCode::corrupt,
                fmt::format("the chunk size {} is not a power of two", chunk_size));
  }
  superblock.chunk_size_bytes = static_cast<std::uint32_t>(chunk_size);
  NACRE_ASSIGN(const std::uint64_t level, get_number(fields, "level", 0, codec_level_max));
  superblock.level = static_cast<int>(level);
  NACRE_ASSIGN(const std::string padding, get_text(fields, "padding", name_size_max));
  NACRE_ASSIGN(superblock.padding, known(padding_from_name(padding), "padding", padding));
  NACRE_ASSIGN(const std::string codec, get_text(fields, "codec", name_size_max));
  NACRE_ASSIGN(superblock.codec, known(engine::codec_from_name(codec), "codec", codec));
  NACRE_ASSIGN(const std::string cipher, get_text(fields, "cipher", name_size_max));
  NACRE_ASSIGN(superblock.cipher, known(engine::suite_from_name(cipher), "cipher", cipher));
  return superblock;
}

}  // namespace

std::string_view padding_name(engine::Padding padding) {
  return padding == engine::Padding::padme ? "padme" : "none";
}

Result<engine::Padding> padding_from_name(std::string_view name) {
  for (const auto padding : {engine::Padding::none, engine::Padding::padme}) {
    if (name == padding_name(padding)) return padding;
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is no padding: use none or padme", name));
}

std::string encode_superblock(const Superblock& superblock, const KeyTree& keys) {
  json incompatible = json::array();
  if (superblock.has_format_2) incompatible.push_back(format_2_feature);
  const json fields = {
      {"generation", superblock.generation},
      {"volume_id", to_hex(superblock.volume_id)},
      {"label", superblock.label},
      {"created", superblock.created},
      {"chunk_size_bytes", superblock.chunk_size_bytes},
      {"padding", padding_name(superblock.padding)},
      {"codec", engine::to_string(superblock.codec)},
      {"level", static_cast<unsigned>(superblock.level)},
      {"cipher", engine::to_string(superblock.cipher)},
      {"features",
       {{"compatible", superblock.compatible_features},
        {"read_only_compatible", superblock.read_only_features},
        {"incompatible", std::move(incompatible)}}},
  };
  return write_document(superblock_kind, fields, mac_key(keys).view());
}

Result<Unverified<Superblock>> parse_superblock(ByteView text) {
  NACRE_ASSIGN(Document document, parse_document(superblock_kind, text));
  NACRE_ASSIGN(Superblock superblock, parse_superblock_fields(document));
  return Unverified<Superblock>{std::move(superblock), std::move(document.seal)};
}

Result<Superblock> verify_superblock(const Unverified<Superblock>& superblock,
                                     const KeyTree& keys) {
  if (superblock.claims.volume_id != keys.volume_id()) {
    return fail(
        ErrorCode::tampered,
        "superblock and keyring are of different volumes: one was put in the other's place");
  }
  const auto verified = verify(superblock.seal, mac_key(keys).view(), "superblock");
  if (verified) return superblock.claims;
  // A rotation replaces the keyring before the superblock. An attacker who had the older key can
  // still make any MAC with it, so only the superblock counts that was there when the rotation
  // began.
  const auto previous = keys.previous_volume_subkey(mac_purpose);
  if (!previous || !verify(superblock.seal, previous->view(), "superblock")) {
    return tl::unexpected(verified.error());
  }
  const auto genuine = keys.previous_superblock();
  if (genuine && *genuine != superblock_digest(superblock)) {
    return fail(ErrorCode::tampered,
                "the superblock is not the one that was there when the rotation of keys began: a "
                "person who had the key before wrote it, or an older one was put back");
  }
  return superblock.claims;
}

engine::Sha256Digest superblock_digest(const Unverified<Superblock>& superblock) {
  return engine::sha256(as_bytes(superblock.seal.text));
}

engine::Sha256Digest superblock_digest(const Superblock& superblock, const KeyTree& keys) {
  return superblock_digest(parse_superblock(as_bytes(encode_superblock(superblock, keys))).value());
}

std::uint64_t generation_to_note(const Superblock& superblock) {
  return superblock.has_format_2 ? superblock.generation : 0;
}

Result<void> check_noted_generation(std::uint64_t generation, std::optional<std::uint64_t> noted) {
  if (!noted || *noted <= generation) return {};
  return fail(ErrorCode::rolled_back,
              fmt::format("the superblock is of generation {}, but the volume was used with "
                          "generation {}: an older one was put back. Restore the newer superblock",
                          generation, *noted));
}

Result<void> check_writable(const Superblock& superblock) {
  if (superblock.read_only_features.empty()) return {};
  return fail(
      ErrorCode::read_only,
      fmt::format("the volume uses the feature \"{}\", which this Nacre cannot write: mount "
                  "it read-only, or with a newer one",
                  superblock.read_only_features.front()));
}

Result<FoundSuperblock> find_superblock(BackingDirectory& directory) {
  NACRE_ASSIGN(ChosenCopy chosen,
               read_copies(directory, superblock_file, superblock_kind.size_bytes_max,
                           [](ByteView text) -> Result<std::uint64_t> {
                             NACRE_ASSIGN(const auto parsed, parse_superblock(text));
                             return parsed.claims.generation;
                           }));
  NACRE_ASSIGN(auto superblock, parse_superblock(chosen.text));
  return FoundSuperblock{std::move(superblock), std::move(chosen.warnings)};
}

Result<void> save_superblock(BackingDirectory& directory, const Superblock& superblock,
                             const KeyTree& keys) {
  NACRE_TRY(check_generation(superblock.generation, "superblock"));
  return write_copies(directory, superblock_file, encode_superblock(superblock, keys));
}

}  // namespace nacre::metadata
