// SPDX-License-Identifier: Apache-2.0
// Seal and unseal of one message: round trips, and every verdict on what was done to a record.
#include "gpu_engine/seal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

constexpr CipherSuite sealed_suite = CipherSuite::aes_256_gcm;
constexpr std::size_t tag_size = 16;

void put_record_crc(Bytes& record) {
  const ByteView view(record);
  store_le(record.data() + offsetof(RecordHeader, crc32),
           crc32(crc32(0, view.first(36)), view.subspan(40)));
}

class Seal : public testing::Test {
 protected:
  Seal() {
    random_.fill(volume_id_);
    random_.fill(message_.salt);
    random_.fill(message_.identity);
    message_.codec = Codec::lz77;
    message_.check_identity = true;
    message_.epoch = 3;
    message_.counter = 0x89abcdef;
    key_ = AeadKey::create(sealed_suite, random_.bytes(32)).value();
  }

  Bytes seal(ByteView plain) {
    Bytes record(record_size_bound(sealed_suite, message_.padding, plain.size()));
    const MessageResult result =
        seal_record(*key_, sealed_suite, volume_id_, message_, plain, record);
    EXPECT_TRUE(result.ok) << result.detail;
    EXPECT_LE(result.output_size, record.size());
    sealed_codec_ = result.codec;
    record.resize(result.output_size);
    return record;
  }

  MessageResult unseal(ByteView record, std::size_t capacity) {
    plain_.assign(capacity, 0xee);
    return unseal_record(*key_, sealed_suite, volume_id_, message_, record, plain_);
  }

  void expect_verdict(ErrorCode verdict, ByteView record, const std::string& what) {
    const MessageResult result = unseal(record, 5000);
    EXPECT_FALSE(result.ok) << what;
    EXPECT_EQ(result.error, verdict) << what << ": " << result.detail;
    EXPECT_STRNE(result.detail, "") << what;
    EXPECT_TRUE(std::ranges::all_of(plain_, [](Byte b) { return b == 0xee || b == 0; })) << what;
  }

  // Seals a body of the caller's making: what a faulty or hostile holder of the key could do.
  Bytes forge(const RecordBodyHeader& body_header, ByteView stream) {
    Bytes record(record_header_size_bytes + sizeof body_header + stream.size() + tag_size);
    RecordHeader header = {};
    header.magic = record_magic;
    header.version = record_version;
    header.stored_size = static_cast<std::uint32_t>(record.size());
    header.epoch = message_.epoch;
    header.salt = message_.salt;
    header.counter = message_.counter;
    store_le(record.data(), header);
    store_le(record.data() + 40, body_header);
    std::copy(stream.begin(), stream.end(), record.begin() + 84);
    Bytes aad(volume_id_.begin(), volume_id_.end());
    aad.insert(aad.end(), record.begin(), record.begin() + 36);
    Bytes nonce(nonce_size_bytes);
    store_le(nonce.data() + 4, std::uint64_t{header.counter});
    const MutableByteView view(record);
    const MutableByteView body = view.subspan(40, record.size() - 40 - tag_size);
    key_->seal(nonce, aad, body, body, view.last(tag_size));
    put_record_crc(record);
    return record;
  }

  RecordBodyHeader good_body(std::size_t size) const {
    return {.codec = 0,
            .reserved = {},
            .plain_size = static_cast<std::uint32_t>(size),
            .stream_size = static_cast<std::uint32_t>(size),
            .identity = message_.identity};
  }

  TestRandom random_;
  VolumeId volume_id_ = {};
  Message message_;
  std::shared_ptr<const AeadKey> key_;
  Codec sealed_codec_ = Codec::none;
  Bytes plain_;
};

TEST_F(Seal, gives_back_what_it_was_given) {
  for (const Codec codec : {Codec::none, Codec::lz77, Codec::zstd, Codec::rle, Codec::huffman,
                            Codec::gdeflate, Codec::lzw, Codec::automatic}) {
    for (const Padding padding : {Padding::none, Padding::padme}) {
      for (const DataKind kind : data_kinds) {
        for (const std::size_t size : edge_sizes) {
          SCOPED_TRACE(testing::Message() << to_string(codec) << " size " << size);
          message_.codec = codec;
          message_.padding = padding;
          const Bytes plain = make_data(kind, size, random_);
          const Bytes record = seal(plain);
          ASSERT_TRUE(verify_record_crc(record).has_value());
          for (const std::size_t extra : {0u, 100u}) {
            const MessageResult result = unseal(record, size + extra);
            ASSERT_TRUE(result.ok) << result.detail;
            ASSERT_EQ(result.output_size, size);
            ASSERT_TRUE(std::equal(plain.begin(), plain.end(), plain_.begin()));
            EXPECT_EQ(result.codec, sealed_codec_);
            EXPECT_TRUE(codec_is_available(result.codec));
            EXPECT_EQ(result.identity, message_.identity);
          }
        }
      }
    }
  }
}

TEST_F(Seal, falls_back_to_no_codec_when_the_stream_would_not_be_smaller) {
  for (const Codec codec : {Codec::lz77, Codec::zstd, Codec::gdeflate}) {
    message_.codec = codec;
    for (const std::size_t size : {1u, 7u, 4096u, 65536u, 131072u}) {
      const Bytes record = seal(random_.bytes(size));
      EXPECT_EQ(sealed_codec_, Codec::none);
      EXPECT_EQ(record.size(), 40 + 44 + size + tag_size);
    }
    EXPECT_LT(seal(Bytes(65536)).size(), 1000u);
    EXPECT_EQ(sealed_codec_, codec);
  }
}

TEST_F(Seal, under_auto_names_the_codec_that_was_chosen) {
  message_.codec = Codec::automatic;
  seal(random_.bytes(65536));
  EXPECT_EQ(sealed_codec_, Codec::none);
  const Bytes text = make_data(DataKind::text, 65536, random_);
  for (const int level : {0, 1, 6, 9}) {
    message_.level = static_cast<std::int8_t>(level);
    EXPECT_LT(seal(text).size(), text.size() / 3);
    EXPECT_EQ(sealed_codec_, choose_codec(Codec::automatic, level, text).codec);
  }
}

TEST_F(Seal, more_room_than_the_bound_changes_nothing) {
  for (const DataKind kind : data_kinds) {
    const Bytes plain = make_data(kind, 65536, random_);
    const Bytes record = seal(plain);
    Bytes roomy(2 * record_size_bound(sealed_suite, Padding::none, plain.size()));
    const MessageResult result =
        seal_record(*key_, sealed_suite, volume_id_, message_, plain, roomy);
    ASSERT_TRUE(result.ok);
    EXPECT_EQ(result.codec, sealed_codec_);
    roomy.resize(result.output_size);
    EXPECT_TRUE(unseal(roomy, plain.size()).ok);
    EXPECT_TRUE(plain_ == plain);
  }
}

TEST_F(Seal, writes_the_header_that_the_format_names) {
  const Bytes record = seal(Bytes(100, 1));
  const auto header = parse_record_header(record).value();
  EXPECT_EQ(header.stored_size, record.size());
  EXPECT_EQ(header.epoch, 3u);
  EXPECT_EQ(header.counter, 0x89abcdefu);
  EXPECT_EQ(header.salt, message_.salt);
  // Nothing that the body says is in the clear.
  EXPECT_EQ(std::search(record.begin() + 40, record.end(), message_.identity.begin(),
                        message_.identity.end()),
            record.end());
}

TEST_F(Seal, opens_by_the_book_with_the_cipher_alone) {
  message_.padding = Padding::padme;
  const Bytes plain = make_data(DataKind::text, 3000, random_);
  const Bytes record = seal(plain);
  Bytes aad(volume_id_.begin(), volume_id_.end());
  aad.insert(aad.end(), record.begin(), record.begin() + 36);
  Bytes nonce(12);
  store_le(nonce.data() + 4, std::uint64_t{0x89abcdef});
  const ByteView view(record);
  Bytes body(record.size() - 40 - tag_size);
  ASSERT_TRUE(key_->open(nonce, aad, view.subspan(40, body.size()), view.last(16), body));
  const auto header = load_le<RecordBodyHeader>(body.data());
  EXPECT_EQ(header.codec, static_cast<Byte>(Codec::lz77));
  EXPECT_EQ(header.plain_size, 3000u);
  EXPECT_EQ(header.identity, message_.identity);
  EXPECT_EQ(body.size(), padded_size(Padding::padme, 44 + header.stream_size));
  EXPECT_TRUE(std::all_of(body.begin() + 44 + header.stream_size, body.end(), [](Byte b) {
    return b == 0;
  })) << "padding is zeros";
  Bytes decoded(3000);
  ASSERT_TRUE(decompress(Codec::lz77, ByteView(body).subspan(44, header.stream_size), decoded));
  EXPECT_TRUE(decoded == plain);
}

TEST_F(Seal, any_changed_bit_is_rot_to_the_keyless_check) {
  const Bytes record = seal(make_data(DataKind::text, 150, random_));
  for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
    Bytes changed = record;
    changed[bit / 8] = static_cast<Byte>(changed[bit / 8] ^ (1u << (bit % 8)));
    const auto checked = verify_record_crc(changed);
    ASSERT_FALSE(checked.has_value()) << "bit " << bit;
    const bool version_bit = bit / 8 == offsetof(RecordHeader, version);
    EXPECT_TRUE(checked.error().code == ErrorCode::corrupt ||
                (version_bit && checked.error().code == ErrorCode::unsupported));
    expect_verdict(checked.error().code, changed, "bit " + std::to_string(bit));
  }
}

TEST_F(Seal, any_changed_byte_with_its_crc_put_right_is_tampering) {
  const Bytes record = seal(make_data(DataKind::text, 150, random_));
  for (std::size_t at = 0; at < record.size(); ++at) {
    if (at >= offsetof(RecordHeader, crc32) && at < record_header_size_bytes) continue;
    for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
      Bytes changed = record;
      changed[at] = static_cast<Byte>(changed[at] ^ change);
      put_record_crc(changed);
      // Magic, version, reserved and size fields are caught before the tag.
      const bool structure = at < offsetof(RecordHeader, epoch);
      const MessageResult result = unseal(changed, 5000);
      EXPECT_FALSE(result.ok) << "byte " << at;
      EXPECT_TRUE(structure || result.error == ErrorCode::tampered) << "byte " << at;
    }
  }
}

TEST_F(Seal, records_cut_or_with_a_tail_are_rot) {
  const Bytes record = seal(make_data(DataKind::text, 150, random_));
  for (std::size_t size = 0; size < record.size(); ++size)
    expect_verdict(ErrorCode::corrupt, ByteView(record).first(size),
                   "cut to " + std::to_string(size));
  Bytes longer = record;
  longer.push_back(0);
  expect_verdict(ErrorCode::corrupt, longer, "one byte more");
  // Cut with all sizes and the CRC put right: the tag is no longer one.
  Bytes shorter(record.begin(), record.end() - 1);
  store_le(shorter.data() + 8, static_cast<std::uint32_t>(shorter.size()));
  put_record_crc(shorter);
  expect_verdict(ErrorCode::tampered, shorter, "cut and patched");
}

TEST_F(Seal, another_key_volume_or_identity_is_tampering) {
  const Bytes plain = make_data(DataKind::text, 150, random_);
  const Bytes record = seal(plain);
  const auto right_key = key_;
  key_ = AeadKey::create(sealed_suite, random_.bytes(32)).value();
  expect_verdict(ErrorCode::tampered, record, "another key");
  key_ = right_key;
  volume_id_[5] ^= 1;
  expect_verdict(ErrorCode::tampered, record, "another volume");
  volume_id_[5] ^= 1;

  const RecordIdentity right = message_.identity;
  for (std::size_t at = 0; at < right.size(); ++at) {
    message_.identity[at] ^= 0x10;
    expect_verdict(ErrorCode::tampered, record, "identity byte " + std::to_string(at));
    message_.identity = right;
  }
  message_.identity = {};
  EXPECT_EQ(unseal(record, plain.size()).identity, right) << "the found one is reported";
  message_.check_identity = false;
  const MessageResult unchecked = unseal(record, plain.size());
  EXPECT_TRUE(unchecked.ok);
  EXPECT_EQ(unchecked.identity, right);
}

TEST_F(Seal, the_identity_is_not_reported_when_the_tag_is_wrong) {
  Bytes record = seal(Bytes(100, 1));
  record.back() ^= 1;
  put_record_crc(record);
  EXPECT_EQ(unseal(record, 100).identity, RecordIdentity{});
}

TEST_F(Seal, a_body_that_contradicts_itself_is_refused_under_a_valid_tag) {
  const Bytes stream(200, 0x5c);
  EXPECT_TRUE(unseal(forge(good_body(200), stream), 200).ok) << "the good one must open";
  const auto forged = [&](auto change) {
    RecordBodyHeader body = good_body(200);
    change(body);
    return forge(body, stream);
  };
  for (const std::uint32_t size : {201u, 65536u, 0x7fffffffu, 0xffffffffu})
    expect_verdict(ErrorCode::corrupt, forged([&](auto& body) { body.stream_size = size; }),
                   "stream size " + std::to_string(size));
  for (const std::uint32_t size : {0u, 199u, 201u, 5001u, chunk_size_bytes_max + 1, 0xffffffffu})
    expect_verdict(ErrorCode::corrupt, forged([&](auto& body) { body.plain_size = size; }),
                   "plain size " + std::to_string(size));
  expect_verdict(ErrorCode::corrupt, forged([](auto& body) { body.stream_size = 199; }),
                 "stream one shorter");
  expect_verdict(ErrorCode::corrupt, forged([](auto& body) {
                   body.stream_size = 201;
                   body.plain_size = 201;
                 }),
                 "stream that would take the tag's first byte along");
  for (int i = 0; i < 3; ++i)
    expect_verdict(ErrorCode::corrupt, forged([&](auto& body) { body.reserved[i] = 1; }),
                   "reserved byte");
  for (const Codec codec : {Codec::lz77, Codec::zstd})
    expect_verdict(ErrorCode::corrupt,
                   forged([&](auto& body) { body.codec = static_cast<Byte>(codec); }),
                   "stream of another codec");
  for (int codec = 0; codec < 256; ++codec) {
    if (codec_is_available(static_cast<Codec>(codec))) continue;
    expect_verdict(ErrorCode::unsupported,
                   forged([&](auto& body) { body.codec = static_cast<Byte>(codec); }),
                   "codec " + std::to_string(codec));
  }
}

TEST_F(Seal, hostile_streams_under_a_valid_tag_are_refused_and_leave_nothing) {
  for (const Codec codec : {Codec::lz77, Codec::zstd}) {
    for (int round = 0; round < 500; ++round) {
      const Bytes plain = make_data(DataKind::text, 1 + random_.below(3000), random_);
      Bytes stream(stream_size_bound(codec, plain.size()));
      stream.resize(compress(codec, 0, plain, stream).value());
      for (int edit = 0; edit < 3; ++edit)
        stream[random_.below(stream.size())] = static_cast<Byte>(random_.next());
      RecordBodyHeader body = good_body(plain.size());
      body.codec = static_cast<Byte>(codec);
      body.stream_size = static_cast<std::uint32_t>(stream.size());
      const MessageResult result = unseal(forge(body, stream), plain.size());
      if (result.ok) continue;
      EXPECT_EQ(result.error, ErrorCode::corrupt);
      EXPECT_TRUE(std::ranges::all_of(plain_, [](Byte b) { return b == 0xee || b == 0; }));
    }
  }
}

TEST_F(Seal, a_record_too_small_for_its_suite_is_rot) {
  Bytes record(record_size_bytes_min);
  RecordHeader header = {};
  header.magic = record_magic;
  header.version = record_version;
  header.stored_size = record_size_bytes_min;
  store_le(record.data(), header);
  put_record_crc(record);
  expect_verdict(ErrorCode::tampered, record, "smallest record with a zero tag");
}

TEST_F(Seal, refuses_requests_that_are_not_valid) {
  const Bytes plain(1000, 1);
  Bytes record(record_size_bound(sealed_suite, Padding::none, plain.size()));
  const auto code_of = [&](ByteView in, MutableByteView out) {
    return seal_record(*key_, sealed_suite, volume_id_, message_, in, out).error;
  };
  EXPECT_EQ(code_of(plain, MutableByteView(record).first(record.size() - 1)), ErrorCode::range);
  EXPECT_EQ(code_of(plain, {}), ErrorCode::range);
  message_.codec = Codec{200};
  EXPECT_EQ(code_of(plain, record), ErrorCode::unsupported);
  message_.codec = Codec::lz77;
  message_.level = 10;
  EXPECT_EQ(code_of(plain, record), ErrorCode::invalid_argument);
  message_.level = -1;
  EXPECT_EQ(code_of(plain, record), ErrorCode::invalid_argument);
  message_.level = 0;
  const Bytes long_plain(chunk_size_bytes_max + 1);
  Bytes long_record(2 * long_plain.size());
  EXPECT_EQ(code_of(long_plain, long_record), ErrorCode::too_big);
}

TEST_F(Seal, both_aead_implementations_make_the_same_record) {
  const Bytes raw = random_.bytes(32);
  const Bytes plain = make_data(DataKind::mixed, 65536, random_);
  key_ = AeadKey::create(sealed_suite, raw, CryptoImplementation::openssl).value();
  const Bytes one = seal(plain);
  key_ = AeadKey::create(sealed_suite, raw).value();
  EXPECT_TRUE(seal(plain) == one);
  EXPECT_TRUE(unseal(one, plain.size()).ok);
}

}  // namespace
}  // namespace nacre::engine
