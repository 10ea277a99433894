// SPDX-License-Identifier: Apache-2.0
// Checks docs/vectors/ with the code that reads and writes volumes. vectors_test.py checks them
// with an independent reader. A difference shows that the two have drifted apart.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "gpu_engine/codec/codec.h"
#include "gpu_engine/seal.h"
#include "metadata/format/rows.h"
#include "metadata/keys/keyring.h"
#include "metadata/keys/passphrase_seal.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/superblock.h"
#include "metadata/text/text_bytes.h"
#include "tests/support/memory_backing.h"
#include "tests/support/source_folder.h"

namespace nacre::tests {
namespace {

using nlohmann::json;

json load(const std::string& name) {
  std::ifstream file(source_folder() + "/docs/vectors/" + name + ".json");
  EXPECT_TRUE(file) << name;
  return json::parse(file);
}

Bytes unhex(const json& text) {
  const std::string digits = text;
  Bytes bytes(digits.size() / 2);
  EXPECT_TRUE(metadata::from_hex(digits, bytes)) << digits;
  return bytes;
}

template <std::size_t size>
std::array<Byte, size> unhex_array(const json& text) {
  std::array<Byte, size> bytes = {};
  EXPECT_TRUE(metadata::from_hex(text.get<std::string>(), bytes));
  return bytes;
}

engine::CipherSuite suite_of(const json& vector) {
  return engine::suite_from_name(vector.at("suite").get<std::string>()).value();
}

metadata::EpochKey epoch_of(const json& vector) {
  return {.number = vector.at("epoch"),
          .suite = suite_of(vector),
          .key = SecretBytes(unhex(vector.at("epoch_key")))};
}

// Keys of a volume with that one epoch.
metadata::KeyTree keys_of(const json& vector) {
  std::vector<metadata::EpochKey> epochs;
  epochs.push_back(epoch_of(vector));
  return {unhex_array<16>(vector.at("volume_id")), SecretBytes(Bytes(32)), std::move(epochs)};
}

TEST(FormatVectors, derivations) {
  const json vectors = load("derivations");
  const auto volume_id = unhex_array<16>(vectors.at("volume_id"));
  const Bytes volume_key = unhex(vectors.at("volume_key"));
  for (const json& vector : vectors.at("volume_subkeys")) {
    const auto key = metadata::derive_volume_subkey(volume_id, volume_key,
                                                    vector.at("purpose").get<std::string>());
    EXPECT_EQ(metadata::to_hex(key.view()), vector.at("key").get<std::string>())
        << vector.at("purpose");
  }
  std::set<engine::CipherSuite> suites;
  for (const json& vector : vectors.at("write_sessions")) {
    const auto key =
        keys_of(vector).session_key(vector.at("epoch"), unhex_array<16>(vector.at("salt")));
    EXPECT_EQ(metadata::to_hex((*key)->key.view()), vector.at("key").get<std::string>())
        << vector.at("suite");
    suites.insert((*key)->suite);
  }
  EXPECT_EQ(suites.size(), std::size_t{engine::cipher_suite_number_max});
  for (const json& vector : vectors.at("database_files")) {
    const auto key =
        keys_of(vector).database_file_key(vector.at("epoch"), unhex(vector.at("salt")), "CURRENT");
    EXPECT_EQ(metadata::to_hex(key->view()), vector.at("key").get<std::string>())
        << vector.at("suite");
  }
  const auto hash_key = unhex_array<16>(vectors.at("name_hash_key"));
  for (const json& vector : vectors.at("name_hashes")) {
    const std::string name = vector.at("name");
    EXPECT_EQ(metadata::name_hash(hash_key, name), vector.at("hash").get<std::uint64_t>()) << name;
  }
}

TEST(FormatVectors, keyring_and_superblock) {
  const json vector = load("keyring");
  const std::string passphrase = vector.at("passphrase");
  const json& kdf = vector.at("argon2id");
  const auto k1_k2 = engine::argon2id(
      as_bytes(passphrase), unhex(kdf.at("salt")),
      {.memory_kib = kdf.at("memory_kib"), .passes = kdf.at("passes"), .lanes = kdf.at("lanes")},
      64);
  EXPECT_EQ(metadata::to_hex(k1_k2->view()), kdf.at("k1_k2").get<std::string>());

  const std::string text = vector.at("keyring");
  const auto parsed = metadata::parse_keyring(as_bytes(text));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(metadata::to_hex(parsed->claims.recipients.at(0).wrapped_volume_key),
            vector.at("wrapped_volume_key").get<std::string>());
  const auto opened = metadata::open_keyring(*parsed, SecretBytes(as_bytes(passphrase)));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_FALSE(opened->access.is_unconfirmed);
  EXPECT_EQ(metadata::to_hex(opened->keys->volume_key().view()),
            vector.at("volume_key").get<std::string>());
  const auto epochs = opened->keys->epochs();
  ASSERT_EQ(epochs.size(), vector.at("epochs").size());
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    const json& epoch = vector.at("epochs")[i];
    EXPECT_EQ(epochs[i].number, epoch.at("epoch").get<std::uint32_t>());
    EXPECT_EQ(epochs[i].suite, suite_of(epoch));
    EXPECT_EQ(metadata::to_hex(epochs[i].key.view()), epoch.at("epoch_key").get<std::string>());
  }
  EXPECT_EQ(metadata::encode_keyring(parsed->claims, *opened->keys), text);

  for (const char* name : {"superblock", "superblock_under_previous_key"}) {
    const std::string superblock_text = vector.at(name);
    const auto superblock = metadata::parse_superblock(as_bytes(superblock_text));
    ASSERT_TRUE(superblock) << superblock.error().message;
    EXPECT_TRUE(metadata::verify_superblock(*superblock, *opened->keys)) << name;
  }
  const std::string superblock_text = vector.at("superblock");
  EXPECT_EQ(metadata::encode_superblock(
                metadata::parse_superblock(as_bytes(superblock_text))->claims, *opened->keys),
            superblock_text);
}

TEST(FormatVectors, keyring_of_format_2) {
  const json vector = load("keyring_format_2");
  const auto volume_id = unhex_array<16>(vector.at("volume_id"));
  const std::string text = vector.at("keyring");
  const auto parsed = metadata::parse_keyring(as_bytes(text));
  ASSERT_TRUE(parsed) << parsed.error().message;
  const metadata::Keyring& keyring = parsed->claims;
  EXPECT_EQ(keyring.recipients.size(), vector.at("passphrases").size() + 1);
  for (std::size_t i = 0; i < vector.at("passphrases").size(); ++i) {
    const json& known = vector.at("passphrases")[i];
    const std::string passphrase = known.at("passphrase");
    const metadata::Recipient& recipient = keyring.recipients.at(i);
    const auto keys =
        metadata::derive_passphrase_keys(as_bytes(passphrase), recipient.passphrase.value());
    ASSERT_TRUE(keys) << keys.error().message;
    EXPECT_EQ(metadata::to_hex(keys->both.view()), known.at("argon2id").at("x").get<std::string>());
    const auto seal = metadata::derive_recipient_seal(*keys, volume_id, recipient.public_key);
    EXPECT_EQ(metadata::to_hex(seal.check), known.at("check").get<std::string>());
    EXPECT_EQ(metadata::to_hex(seal.key.view()), known.at("seal").get<std::string>());
    EXPECT_EQ(metadata::to_hex(seal.fingerprint), known.at("fingerprint").get<std::string>());
    const auto opened = metadata::open_keyring(*parsed, SecretBytes(as_bytes(passphrase)));
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(metadata::to_hex(opened->keys->volume_key().view()),
              vector.at("volume_key").get<std::string>());
    EXPECT_EQ(opened->access.recipient_index, i);
    // The first one seals the volume key and says what it follows, the second one cannot yet.
    EXPECT_EQ(opened->access.is_unconfirmed, i == 1);
    EXPECT_EQ(opened->access.follows.has_value(), i == 0);
    if (i == 0) {
      EXPECT_EQ(metadata::to_hex(*opened->access.follows), vector.at("follows").get<std::string>());
    }
    const auto epochs = opened->keys->epochs();
    ASSERT_EQ(epochs.size(), 1u);
    EXPECT_EQ(metadata::to_hex(epochs[0].key.view()),
              vector.at("epoch").at("epoch_key").get<std::string>());
    EXPECT_EQ(epochs[0].format, metadata::EpochFormat::two);
    EXPECT_EQ(metadata::encode_keyring(keyring, *opened->keys), text);
  }
  EXPECT_EQ(keyring.recipients.back().other_kind.value().number, 3);
}

TEST(FormatVectors, records_of_each_suite_are_opened_and_made) {
  const json vectors = load("records");
  std::set<engine::CipherSuite> suites;
  for (const json& vector : vectors.at("records")) {
    SCOPED_TRACE(vector.at("suite").get<std::string>());
    const metadata::KeyTree keys = keys_of(vector);
    const json& fields = vector.at("identity");
    engine::Message message;
    message.check_identity = true;
    message.epoch = vector.at("epoch");
    message.counter = vector.at("counter");
    message.salt = unhex_array<16>(vector.at("salt"));
    message.padding = metadata::padding_from_name(vector.at("padding").get<std::string>()).value();
    message.identity = metadata::encode(metadata::RecordName{
        .inode = {fields.at("inode").get<std::uint64_t>()},
        .chunk = {fields.at("chunk_index").get<std::uint64_t>()},
        .version = {fields.at("version").get<std::uint64_t>()},
        .offset = fields.at("offset"),
        .kind = static_cast<metadata::RecordKind>(fields.at("kind").get<int>())});
    const auto session = keys.session_key(message.epoch, message.salt);
    ASSERT_TRUE(session);
    const engine::CipherSuite suite = (*session)->suite;
    suites.insert(suite);
    const auto key = engine::AeadKey::create(suite, (*session)->key.view());
    ASSERT_TRUE(key) << key.error().message;

    const Bytes record = unhex(vector.at("record"));
    Bytes plain(record.size());
    const auto opened =
        engine::unseal_record(**key, suite, keys.volume_id(), message, record, plain);
    ASSERT_TRUE(opened.ok) << opened.detail;
    plain.resize(opened.output_size);
    EXPECT_EQ(metadata::to_hex(plain), vector.at("plain").get<std::string>());

    Bytes made(engine::record_size_bound(suite, message.padding, plain.size()));
    const auto sealed = engine::seal_record(**key, suite, keys.volume_id(), message, plain, made);
    ASSERT_TRUE(sealed.ok) << sealed.detail;
    made.resize(sealed.output_size);
    EXPECT_EQ(metadata::to_hex(made), vector.at("record").get<std::string>());
  }
  EXPECT_EQ(suites.size(), std::size_t{engine::cipher_suite_number_max});
}

TEST(FormatVectors, streams_of_each_codec) {
  const json vectors = load("streams");
  for (const json& vector : vectors.at("streams")) {
    const std::string name = vector.at("codec");
    const engine::Codec codec = engine::codec_from_name(name).value();
    EXPECT_EQ(static_cast<int>(codec), vector.at("number").get<int>());
    Bytes plain(vector.at("plain_size").get<std::size_t>());
    const auto decoded = engine::decompress(codec, unhex(vector.at("stream")), plain);
    ASSERT_TRUE(decoded) << name << ": " << decoded.error().message;
    EXPECT_EQ(metadata::to_hex(engine::sha256(plain)), vector.at("plain_sha256").get<std::string>())
        << name;
  }
}

TEST(FormatVectors, pages_and_frames) {
  const json vectors = load("database_files");
  const metadata::KeyTree keys = keys_of(vectors);
  const auto backing = MemoryBacking::create();
  const auto store = [&](const json& vector) {
    const std::string path = "db/" + vector.at("name").get<std::string>();
    backing->store(path, unhex(vector.at("file")));
    return path;
  };

  const json& page = vectors.at("page");
  const auto reader = metadata::PageReader::open(*backing, store(page), keys);
  ASSERT_TRUE(reader) << reader.error().message;
  Bytes plain((*reader)->size());
  const auto got = (*reader)->read(0, plain);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(metadata::to_hex(plain), page.at("plain").get<std::string>());

  const json& frames = vectors.at("frames");
  const auto content = metadata::read_frames(*backing, store(frames), keys);
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_EQ(metadata::to_hex(content->plain), frames.at("plain").get<std::string>());
  ASSERT_TRUE(content->walk.witness);
  const json& witness = frames.at("witness");
  EXPECT_EQ(content->walk.witness->previous_log, witness.at("previous_log").get<std::uint64_t>());
  EXPECT_EQ(content->walk.witness->previous_frames,
            witness.at("previous_frames").get<std::uint64_t>());
  EXPECT_EQ(content->walk.witness->done_log, witness.at("done_log").get<std::uint64_t>());
  EXPECT_EQ(content->walk.witness->manifest, witness.at("manifest").get<std::uint64_t>());
  EXPECT_EQ(content->walk.witness->manifest_frames,
            witness.at("manifest_frames").get<std::uint64_t>());
}

}  // namespace
}  // namespace nacre::tests
