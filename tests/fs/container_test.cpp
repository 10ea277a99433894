// SPDX-License-Identifier: Apache-2.0
// Whole containers under every suite and codec, with sizes around multiples of a chunk, many files
// in one run, and sources and sinks that fail.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "fs/crypt/container_inspect.h"
#include "tests/fs/container_fixture.h"

namespace nacre::fs {
namespace {

constexpr std::size_t container_chunk = 4096;

class Container : public ContainerFixture {};

TEST_F(Container, round_trips_every_suite_and_codec) {
  const std::vector<std::size_t> sizes = {0,
                                          1,
                                          31,
                                          container_chunk - 1,
                                          container_chunk,
                                          container_chunk + 1,
                                          5 * container_chunk + 77};
  for (std::uint8_t suite = 1; suite <= engine::cipher_suite_number_max; ++suite) {
    for (int codec = 0; codec < 256; ++codec) {
      if (!engine::codec_is_choosable(static_cast<engine::Codec>(codec))) continue;
      for (const auto padding : {engine::Padding::none, engine::Padding::padme}) {
        SCOPED_TRACE(fmt::format("suite {} codec {}", suite, codec));
        const auto keys = make_keys(static_cast<engine::CipherSuite>(suite));
        std::vector<MemoryFile> files, opened;
        for (const std::size_t size : sizes)
          files.push_back({.source = random_content(size, size + 1)});
        encrypt(files, keys, {.codec = static_cast<engine::Codec>(codec), .padding = padding});
        for (const MemoryFile& file : files)
          opened.push_back({.source = file.sink});
        decrypt(opened);
        for (std::size_t i = 0; i < files.size(); ++i) {
          ASSERT_TRUE(*opened[i].outcome) << opened[i].outcome->error().message;
          EXPECT_EQ(opened[i].sink, files[i].source);
          EXPECT_EQ((*opened[i].outcome)->size_bytes, sizes[i]);
        }
      }
    }
  }
}

TEST_F(Container, is_longer_than_all_batches_together) {
  // With long chunks and with short ones, records are carried from one batch to the next.
  for (const unsigned bits : {container_chunk_bits_min, container_chunk_bits_max}) {
    for (const auto codec : {engine::Codec::none, engine::Codec::zstd}) {
      const Bytes plain = random_content((20u << 20) + 12345, bits);
      const Bytes container =
          seal(plain, make_keys(engine::CipherSuite::aes_256_gcm, bits), {.codec = codec});
      const MemoryFile opened = open(container);
      ASSERT_TRUE(*opened.outcome) << opened.outcome->error().message;
      EXPECT_EQ(opened.sink, plain);
    }
  }
}

TEST_F(Container, compresses_zeros_into_more_records_than_fit_a_batch) {
  const Bytes plain(24u << 20);
  const MemoryFile opened = open(seal(plain, make_keys(), {.codec = engine::Codec::zstd}));
  ASSERT_TRUE(*opened.outcome) << opened.outcome->error().message;
  EXPECT_EQ(opened.sink, plain);
}

TEST_F(Container, changes_keys_where_a_cipher_has_short_blocks) {
  // Three sessions of 512 records.
  const Bytes plain = random_content(1100 * container_chunk + 9, 5);
  const Bytes container = seal(plain, make_keys(engine::CipherSuite::des_cbc));
  std::set<Bytes> salts;
  const auto offsets = record_offsets(container);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    salts.insert(Bytes(container.begin() + static_cast<std::ptrdiff_t>(offsets[i]) + 16,
                       container.begin() + static_cast<std::ptrdiff_t>(offsets[i]) + 32));
  EXPECT_EQ(salts.size(), 3u);
  const MemoryFile opened = open(container);
  ASSERT_TRUE(*opened.outcome) << opened.outcome->error().message;
  EXPECT_EQ(opened.sink, plain);
  // The salts of later sessions follow the rule of docs/FORMAT.md.
  EXPECT_EQ(container_salt({}, 0), engine::SessionSalt{});
  Bytes message(as_bytes("nacre container session").begin(),
                as_bytes("nacre container session").end());
  message.resize(message.size() + 24);
  message[message.size() - 8] = 2;
  const auto digest = engine::sha256(message);
  const auto salt = container_salt({}, 2);
  EXPECT_TRUE(std::equal(salt.begin(), salt.end(), digest.begin()));
}

TEST_F(Container, keeps_what_the_file_was_like) {
  std::vector<MemoryFile> files(2);
  files[0].source = random_content(10, 1);
  files[0].attributes = {.name = "letter.odt",
                         .mode = 0640,
                         .modified = ContainerTime{.seconds = -5, .nanoseconds = 999'999'999}};
  files[1].attributes.name = std::string(300, 'n');  // too long to be kept
  encrypt(files, make_keys());
  const ContainerEnd end = open(files[0].sink).outcome->value();
  EXPECT_EQ(end.attributes.name, "letter.odt");
  EXPECT_EQ(end.attributes.mode, 0640);
  EXPECT_EQ(end.attributes.modified, files[0].attributes.modified);
  const ContainerEnd bare = open(files[1].sink).outcome->value();
  EXPECT_EQ(bare.attributes.name, "");
  EXPECT_FALSE(bare.attributes.mode || bare.attributes.modified);
}

TEST_F(Container, thousands_of_files_share_payloads_and_no_key) {
  constexpr std::size_t count = 3000;
  const auto keys = make_keys(engine::CipherSuite::aes_256_gcm, container_chunk_bits_default);
  const auto before = engine_->stats();
  std::vector<MemoryFile> files(count), opened(count);
  for (std::size_t i = 0; i < count; ++i)
    files[i].source = random_content(i % 700, i);
  encrypt(files, keys);
  const auto payloads = engine_->stats().payload_count - before.payload_count;
  EXPECT_LT(payloads, count / 50);
  std::set<Bytes> salts;
  for (std::size_t i = 0; i < count; ++i) {
    const Byte* const record = files[i].sink.data() + record_offsets(files[i].sink)[0];
    salts.insert(Bytes(record + 16, record + 32));
    opened[i].source = files[i].sink;
  }
  EXPECT_EQ(salts.size(), count);
  decrypt(opened);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(*opened[i].outcome) << i << opened[i].outcome->error().message;
    ASSERT_EQ(opened[i].sink, files[i].source) << i;
  }
}

TEST_F(Container, of_several_keyrings_in_one_run) {
  std::vector<MemoryFile> opened;
  for (std::size_t i = 0; i < 6; ++i)
    opened.push_back({.source = seal(random_content(3 * container_chunk, i), make_keys())});
  decrypt(opened);
  for (std::size_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(*opened[i].outcome) << opened[i].outcome->error().message;
    EXPECT_EQ(opened[i].sink, random_content(3 * container_chunk, i));
  }
}

TEST_F(Container, a_file_that_fails_fails_alone) {
  const auto keys = make_keys();
  const Bytes plain = random_content(30 * container_chunk, 3);
  const Bytes container = seal(plain, keys);
  for (const bool encrypts : {true, false}) {
    const Bytes& source = encrypts ? plain : container;
    std::vector<MemoryFile> files(7, MemoryFile{.source = source});
    files[1].read_fails_at = 0;
    files[2].write_fails_at = 0;
    files[4].write_fails_at = 7 * container_chunk;
    files[5].read_fails_at = source.size() - 1;
    if (encrypts) {
      encrypt(files, keys);
    } else {
      decrypt(files);
    }
    for (const std::size_t i : {0u, 3u, 6u})
      EXPECT_TRUE(*files[i].outcome) << i;
    EXPECT_EQ(error_of(*files[1].outcome), ErrorCode::io);
    EXPECT_EQ(error_of(*files[2].outcome), ErrorCode::no_space);
    EXPECT_EQ(error_of(*files[4].outcome), ErrorCode::no_space);
    EXPECT_EQ(error_of(*files[5].outcome), ErrorCode::io);
  }
}

TEST_F(Container, opens_with_a_passphrase_and_not_with_another) {
  const auto secret = [](std::string_view text) {
    return metadata::VolumeSecret(SecretBytes(as_bytes(text)));
  };
  metadata::NewPassphrase passphrase{.passphrase = SecretBytes(as_bytes("first")),
                                     .kdf = {.memory_kib = 8192, .passes = 1, .lanes = 1},
                                     .rsa_bits = engine::rsa_bits_min};
  std::vector<metadata::NewRecipient> recipients;
  recipients.emplace_back(std::move(passphrase));
  recipients.emplace_back(
      metadata::NewPublicKey{.key = std::get<engine::RsaPrivateKey>(*identity_).public_key()});
  const auto keys = make_container_keys(engine::CipherSuite::aes_128_ctr, recipients).value();
  const Bytes plain = random_content(1000, 8);
  std::vector<MemoryFile> files(3);
  for (MemoryFile& file : files)
    file.source = seal(plain, keys);
  decrypt(files, secret("first"));
  for (const MemoryFile& file : files)
    EXPECT_EQ(file.sink, plain);
  EXPECT_EQ(open(files[0].source).sink, plain);  // the other recipient
  std::vector<MemoryFile> refused(2, MemoryFile{.source = files[0].source});
  decrypt(refused, secret("second"));
  for (const MemoryFile& file : refused)
    EXPECT_EQ(error_of(*file.outcome), ErrorCode::wrong_key);
  const auto other = engine::RsaPrivateKey::generate(engine::rsa_bits_min).value();
  std::vector<MemoryFile> foreign(1, MemoryFile{.source = files[0].source});
  decrypt(foreign, metadata::VolumeSecret(other));
  EXPECT_EQ(error_of(*foreign[0].outcome), ErrorCode::wrong_key);
}

// No program makes such a container.
TEST_F(Container, with_a_keyring_of_format_2_is_corrupt) {
  metadata::NewPassphrase wanted{.passphrase = SecretBytes(as_bytes("first")),
                                 .kdf = {.memory_kib = 8192, .passes = 1, .lanes = 1},
                                 .has_key_pair = false};
  std::vector<metadata::NewRecipient> who;
  who.emplace_back(std::move(wanted));
  const auto made = metadata::create_keyring({}, engine::CipherSuite::aes_256_gcm, who,
                                             metadata::EpochFormat::two);
  ASSERT_TRUE(made) << made.error().message;
  const std::string text = metadata::encode_keyring(made->keyring, *made->keys);
  EXPECT_EQ(error_of(parse_container_keyring(as_bytes(text))), ErrorCode::corrupt);
}

TEST_F(Container, shows_what_anybody_can_see) {
  const Bytes container = seal(random_content(9 * container_chunk, 2), make_keys());
  for (std::size_t cut = 0; cut <= 2; ++cut) {
    std::size_t at = 0;
    const std::size_t size = cut == 0 ? container.size() : container.size() - cut * 5000;
    const auto found = inspect_container([&](MutableByteView out) -> Result<std::size_t> {
      const std::size_t got = std::min(out.size(), size - at);
      std::copy_n(container.begin() + static_cast<std::ptrdiff_t>(at), got, out.begin());
      at += got;
      return got;
    });
    if (cut > 0) {
      EXPECT_EQ(error_of(found), ErrorCode::corrupt);
      continue;
    }
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->record_count, 10u);
    EXPECT_EQ(found->stored_bytes, container.size());
    EXPECT_EQ(found->header.chunk_size_bytes(), container_chunk);
    EXPECT_EQ(found->keyring.recipients.size(), 1u);
  }
}

}  // namespace
}  // namespace nacre::fs
