// SPDX-License-Identifier: Apache-2.0
// The superblock: what is written comes back; every change of a byte is noticed without keys, and
// every change that puts the CRC-32 right is noticed with them.
#include "metadata/superblock.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/metadata/forge.h"
#include "tests/support/memory_backing.h"

namespace nacre::metadata {
namespace {

using nlohmann::json;
using tests::forge;
using tests::MemoryBacking;

KeyTree some_keys(Byte seed = 1) {
  engine::VolumeId volume_id;
  volume_id.fill(0xcd);
  std::vector<EpochKey> epochs;
  epochs.push_back({.number = 1, .key = SecretBytes(Bytes(32, seed))});
  return KeyTree(volume_id, SecretBytes(Bytes(32, seed)), std::move(epochs));
}

Superblock some_superblock() {
  Superblock superblock{.generation = 7,
                        .label = "Bücher \"&\" mehr",
                        .created = "2026-01-31T23:59:59Z",
                        .chunk_size_bytes = 4096,
                        .padding = engine::Padding::padme,
                        .codec = engine::Codec::zstd,
                        .level = 9,
                        .cipher = engine::CipherSuite::aes_256_gcm,
                        .compatible_features = {"a later hint"},
                        .read_only_features = {}};
  superblock.volume_id.fill(0xcd);
  return superblock;
}

std::string some_text() {
  return encode_superblock(some_superblock(), some_keys());
}

ErrorCode parse_error(const std::string& text) {
  const auto parsed = parse_superblock(as_bytes(text));
  return parsed ? ErrorCode::exists : parsed.error().code;
}

// A counter that wraps would make the oldest superblock the newest.
TEST(Superblock, of_the_last_generation_is_never_written_and_refused) {
  EXPECT_EQ(next_generation(7), 8u);
  EXPECT_EQ(next_generation(generation_end - 1), generation_end);
  EXPECT_EQ(next_generation(generation_end), generation_end);
  auto superblock = some_superblock();
  superblock.generation = generation_end - 1;
  EXPECT_TRUE(parse_superblock(as_bytes(encode_superblock(superblock, some_keys()))));
  superblock.generation = generation_end;
  EXPECT_EQ(parse_error(encode_superblock(superblock, some_keys())), ErrorCode::corrupt);
  const auto backing = MemoryBacking::create();
  const auto saved = save_superblock(*backing, superblock, some_keys());
  ASSERT_FALSE(saved);
  EXPECT_EQ(to_string(saved.error().code), to_string(ErrorCode::too_big));
  EXPECT_TRUE(backing->files().empty());
}

TEST(Superblock, says_whether_its_keyring_may_have_epochs_of_format_2) {
  auto superblock = some_superblock();
  superblock.has_format_2 = true;
  const std::string text = encode_superblock(superblock, some_keys());
  EXPECT_NE(text.find(format_2_feature), std::string::npos);
  EXPECT_TRUE(parse_superblock(as_bytes(text))->claims.has_format_2);
  EXPECT_FALSE(parse_superblock(as_bytes(some_text()))->claims.has_format_2);
}

TEST(Superblock, comes_back) {
  const auto parsed = parse_superblock(as_bytes(some_text()));
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto verified = verify_superblock(*parsed, some_keys());
  ASSERT_TRUE(verified);
  const Superblock expected = some_superblock();
  EXPECT_EQ(verified->volume_id, expected.volume_id);
  EXPECT_EQ(verified->generation, expected.generation);
  EXPECT_EQ(verified->label, expected.label);
  EXPECT_EQ(verified->created, expected.created);
  EXPECT_EQ(verified->chunk_size_bytes, expected.chunk_size_bytes);
  EXPECT_EQ(verified->padding, expected.padding);
  EXPECT_EQ(verified->codec, expected.codec);
  EXPECT_EQ(verified->level, expected.level);
  EXPECT_EQ(verified->cipher, expected.cipher);
  EXPECT_EQ(verified->compatible_features, expected.compatible_features);
  EXPECT_EQ(verified->read_only_features, expected.read_only_features);
}

TEST(Superblock, is_text_that_a_person_can_read) {
  const std::string text = some_text();
  for (const char* line : {"  \"chunk_size_bytes\": 4096,\n", "  \"codec\": \"zstd\",\n",
                           "  \"format\": \"nacre\",\n", "  \"version\": 1,\n",
                           "  \"volume_id\": \"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd\"\n", "Bücher"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(Superblock, is_corrupt_after_any_change_of_a_byte_and_when_cut_off) {
  const std::string text = some_text();
  // Without NACRE_LONG one value in sixteen, other ones for each byte.
  const std::size_t step = std::getenv("NACRE_LONG") != nullptr ? 1 : 16;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (std::size_t byte = at % step; byte < 256; byte += step) {
      if (static_cast<unsigned char>(text[at]) == byte) continue;
      std::string changed = text;
      changed[at] = static_cast<char>(byte);
      ASSERT_EQ(parse_error(changed), ErrorCode::corrupt) << at << " " << byte;
    }
    EXPECT_EQ(parse_error(text.substr(0, at)), ErrorCode::corrupt) << at;
  }
  EXPECT_EQ(parse_error(text + "\n"), ErrorCode::corrupt);
  EXPECT_EQ(parse_error(text + std::string(100'000, ' ')), ErrorCode::corrupt);
}

TEST(Superblock, is_tampered_with_after_any_forged_field) {
  const auto keys = some_keys();
  const std::function<void(json&)> changes[] = {
      [](json& f) { f["label"] = "x"; },
      [](json& f) { f["generation"] = 8; },
      [](json& f) { f["codec"] = "none"; },
      [](json& f) { f["padding"] = "none"; },
      [](json& f) { f["chunk_size_bytes"] = 65536; },
      [](json& f) { f["created"] = "2020-01-01T00:00:00Z"; },
      [](json& f) { f["level"] = 0; },
      [](json& f) { f["features"]["compatible"] = json::array(); },
      [](json& f) { f["unknown"] = true; },
      [](json& f) { f["volume_id"] = std::string(32, '0'); },
      [](json& f) { f["mac"] = std::string(64, '0'); },
  };
  for (const auto& change : changes) {
    const auto parsed = parse_superblock(as_bytes(forge(some_text(), change)));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(verify_superblock(*parsed, keys).error().code, ErrorCode::tampered);
  }
  const auto parsed = parse_superblock(as_bytes(some_text()));
  EXPECT_EQ(verify_superblock(*parsed, some_keys(2)).error().code, ErrorCode::tampered);
  // Even one that the right keys made, when it names another volume than the keyring does.
  Superblock other = some_superblock();
  other.volume_id.fill(0xce);
  const auto renamed = parse_superblock(as_bytes(encode_superblock(other, keys)));
  ASSERT_TRUE(renamed);
  EXPECT_EQ(verify_superblock(*renamed, keys).error().code, ErrorCode::tampered);
}

TEST(Superblock, of_a_newer_nacre_is_unsupported_and_says_so) {
  const auto newer =
      parse_superblock(as_bytes(forge(some_text(), [](json& f) { f["version"] = 2; })));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::unsupported);
  EXPECT_NE(newer.error().message.find("newer Nacre"), std::string::npos);

  const auto feature = parse_superblock(
      as_bytes(forge(some_text(), [](json& f) { f["features"]["incompatible"] = {"dedup"}; })));
  ASSERT_FALSE(feature);
  EXPECT_EQ(feature.error().code, ErrorCode::unsupported);
  EXPECT_NE(feature.error().message.find("\"dedup\""), std::string::npos);

  for (const char* field : {"codec", "cipher", "padding"}) {
    EXPECT_EQ(parse_error(forge(some_text(), [&](json& f) { f[field] = "from the future"; })),
              ErrorCode::unsupported)
        << field;
  }
}

TEST(Superblock, with_a_read_only_feature_cannot_be_written) {
  Superblock superblock = some_superblock();
  EXPECT_TRUE(check_writable(superblock));
  superblock.read_only_features = {"quotas"};
  const auto parsed = parse_superblock(as_bytes(encode_superblock(superblock, some_keys())));
  ASSERT_TRUE(parsed);
  const auto writable = check_writable(parsed->claims);
  EXPECT_EQ(writable.error().code, ErrorCode::read_only);
  EXPECT_NE(writable.error().message.find("quotas"), std::string::npos);
}

TEST(Superblock, with_fields_out_of_bounds_is_corrupt) {
  const std::function<void(json&)> changes[] = {
      [](json& f) { f["chunk_size_bytes"] = 2048; },
      [](json& f) { f["chunk_size_bytes"] = 2u << 20; },
      [](json& f) { f["chunk_size_bytes"] = 65537; },
      [](json& f) { f["chunk_size_bytes"] = -65536; },
      [](json& f) { f["chunk_size_bytes"] = "65536"; },
      [](json& f) { f["level"] = 10; },
      [](json& f) { f["label"] = std::string(256, 'x'); },
      [](json& f) { f["label"] = "a\nclean"; },
      [](json& f) { f["label"] = "\x7f"; },
      [](json& f) { f["created"] = "\x1b[2J"; },
      [](json& f) { f["volume_id"] = "00"; },
      [](json& f) { f["generation"] = 0; },
      [](json& f) { f["version"] = 0; },
      [](json& f) { f["format"] = "nacre keyring"; },
      [](json& f) { f["features"] = json::array(); },
      [](json& f) { f["features"]["incompatible"] = "x"; },
      [](json& f) { f["features"]["incompatible"] = {1}; },
  };
  for (const auto& change : changes) {
    EXPECT_EQ(parse_error(forge(some_text(), change)), ErrorCode::corrupt);
  }
  const json fields = json::parse(some_text());
  for (const auto& [name, value] : fields.items()) {
    EXPECT_EQ(parse_error(forge(some_text(), [&](json& f) { f.erase(name); })),
              name == "crc32" ? ErrorCode::exists : ErrorCode::corrupt)
        << name;
  }
}

TEST(Superblock, made_of_rubbish_is_corrupt) {
  std::string deep;
  for (int i = 0; i < 30'000; ++i)
    deep += "[";
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("null"), std::string("[]"),
        std::string("{\"crc32\": 5}"), deep, std::string(1000, '\0'), "{\"a\":" + deep}) {
    EXPECT_EQ(parse_error(text), ErrorCode::corrupt);
  }
}

TEST(Superblock, is_saved_twice_and_found_again) {
  const auto backing = MemoryBacking::create();
  EXPECT_EQ(find_superblock(*backing).error().code, ErrorCode::not_found);
  ASSERT_TRUE(save_superblock(*backing, some_superblock(), some_keys()));
  EXPECT_EQ(backing->files(), (std::vector<std::string>{"superblock", "superblock.copy"}));
  const auto found = find_superblock(*backing);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->warnings.empty());
  EXPECT_EQ(found->superblock.claims.label, some_superblock().label);
  EXPECT_TRUE(verify_superblock(found->superblock, some_keys()));
}

}  // namespace
}  // namespace nacre::metadata
