// SPDX-License-Identifier: Apache-2.0
// Which messages are sorted to devices. No device is needed for that.
#include "gpu_engine/plan/message_kind.h"

#include <numeric>
#include <optional>
#include <vector>

#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_payload.h"

namespace nacre::engine {
namespace {

class MessageKinds : public testing::Test {
 protected:
  Sorted sort() {
    std::vector<std::uint32_t> all(payload_.get().messages.size());
    std::iota(all.begin(), all.end(), 0);
    return sort_by_kind(payload_.get(), all);
  }

  std::unique_ptr<Engine> engine_ =
      Engine::create({.choice = EngineChoice::cpu, .thread_count = 1}).value();
  TestPayload payload_{*engine_};
  const Bytes key_ = Bytes(32, 7);
  const Bytes plain_ = Bytes(5000, 'a');
};

TEST_F(MessageKinds, are_grouped_in_their_order) {
  for (std::uint32_t i = 0; i < 12; ++i) {
    if (i % 3 == 0) {
      payload_.add(Operation::checksum, plain_, 0).checksum = Checksum::crc32;
    } else {
      payload_.add_seal(plain_, key_, i % 3 == 1 ? Codec::lz77 : Codec::zstd, i);
    }
  }
  const Sorted sorted = sort();
  ASSERT_EQ(sorted.groups.size(), 2u);
  EXPECT_EQ(sorted.groups[0].kind.operation, Operation::checksum);
  EXPECT_EQ(sorted.groups[0].indexes, (std::vector<std::uint32_t>{0, 3, 6, 9}));
  EXPECT_EQ(sorted.groups[1].kind.operation, Operation::seal);
  EXPECT_EQ(sorted.groups[1].indexes, (std::vector<std::uint32_t>{1, 4, 7, 10}));
  EXPECT_EQ(sorted.rest, (std::vector<std::uint32_t>{2, 5, 8, 11}));
}

// The messages before a message must not change its kind: sorted together, each has the kind that
// it has alone.
TEST_F(MessageKinds, do_not_depend_on_neighbours) {
  TestRandom random;
  const Bytes short_one(700, 'b');
  Payload& payload = payload_.get();
  const auto suite_key = [&](CipherSuite suite) {
    return payload.add_key({.suite = suite}, Bytes(key_size_bytes(suite), 3));
  };
  const std::array keys = {
      suite_key(CipherSuite::aes_256_gcm), suite_key(CipherSuite::aes_256_ctr),
      suite_key(CipherSuite::des_ede3_cbc),
      payload.add_key(
          {.kind = KeyKind::block_cipher, .cipher = BlockCipher::aes_128, .mode = CipherMode::cbc},
          Bytes(16, 4)),
      payload.add_key(
          {.kind = KeyKind::block_cipher, .cipher = BlockCipher::des, .mode = CipherMode::ctr},
          Bytes(8, 5))};
  constexpr std::array operations = {Operation::seal,     Operation::unseal,    Operation::reseal,
                                     Operation::compress, Operation::checksum,  Operation::encrypt,
                                     Operation::decrypt,  Operation::decompress};
  constexpr std::array codecs = {Codec::none, Codec::lz77, Codec::zstd, Codec::gdeflate};
  constexpr std::array<std::uint64_t, 4> sizes = {64, 512, 4096, 4999};
  constexpr std::array<std::uint64_t, 4> capacities = {64, 700, 4400, 10000};
  for (int i = 0; i < 8000; ++i) {
    const bool repeats = i > 0 && random.below(3) > 0;
    const Message before = repeats ? payload.messages.back() : Message{};
    Message& message = payload_.add(Operation::seal, short_one, 700);
    const Message made = message;
    if (repeats) {
      message = before;
      message.input_offset = made.input_offset;
      message.output_offset = made.output_offset;
    }
    // One thing else than before, or all of them.
    const std::size_t what = repeats ? random.below(12) : 12;
    const auto changes = [&](std::size_t field) { return what == field || what == 12; };
    if (changes(0)) message.operation = operations[random.below(operations.size())];
    if (changes(1)) message.key_index = keys[random.below(keys.size())];
    if (changes(2)) message.new_key_index = keys[random.below(keys.size())];
    if (changes(3)) message.codec = codecs[random.below(codecs.size())];
    if (changes(4)) message.level = static_cast<std::int8_t>(random.below(11));
    if (changes(5)) message.checksum = random.below(2) ? Checksum::crc32 : Checksum::crc32c;
    if (changes(6)) message.input_size = sizes[random.below(sizes.size())];
    if (changes(7)) message.output_capacity = capacities[random.below(capacities.size())];
    if (changes(8)) message.padding = random.below(2) ? Padding::none : Padding::padme;
    if (changes(9)) message.iv[0] = static_cast<Byte>(random.below(2));
    if (changes(10)) message.aad_size = random.below(3) == 0 ? std::uint64_t{1} << 40 : 0;
  }
  const Sorted sorted = sort();
  std::size_t sorted_count = 0;
  std::vector<std::optional<BatchKind>> kinds(payload.messages.size());
  for (const KindGroup& group : sorted.groups) {
    EXPECT_TRUE(std::ranges::is_sorted(group.indexes));
    ASSERT_EQ(group.weights.size(), group.indexes.size());
    std::uint64_t input_bytes = 0;
    for (std::size_t i = 0; i < group.indexes.size(); ++i) {
      const Message& message = payload.messages[group.indexes[i]];
      kinds[group.indexes[i]] = group.kind;
      EXPECT_EQ(group.weights[i], batch_weight(message) + message.aad_size);
      input_bytes += message.input_size;
    }
    EXPECT_EQ(group.input_bytes, input_bytes);
    sorted_count += group.indexes.size();
  }
  EXPECT_EQ(sorted_count + sorted.rest.size(), payload.messages.size());
  EXPECT_GT(sorted.groups.size(), 20u);
  EXPECT_GT(sorted.rest.size(), 200u);
  for (std::uint32_t index = 0; index < payload.messages.size(); ++index) {
    const Sorted alone = sort_by_kind(payload, {&index, 1});
    ASSERT_EQ(alone.groups.empty(), !kinds[index].has_value()) << index;
    if (kinds[index]) {
      ASSERT_TRUE(alone.groups[0].kind == *kinds[index]) << index;
    }
  }
}

// The rest of a group may be another backend's.
TEST_F(MessageKinds, count_what_a_group_keeps) {
  for (const std::uint64_t size : {100, 2000, 300, 4000})
    payload_.add(Operation::checksum, ByteView(plain_).first(size), 0);
  KindGroup group = sort().groups.at(0);
  EXPECT_EQ(group.input_bytes, 6400u);
  const std::vector<std::uint32_t> weights(group.weights.begin(), group.weights.begin() + 2);
  keep_first(group, 2, payload_.get());
  EXPECT_EQ(group.indexes, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(group.weights, weights);
  EXPECT_EQ(group.input_bytes, 2100u);
}

// Devices have no thorough level of lz77: at level 9 a device made the data 2.66 times smaller,
// LZ4HC 3.18 times.
TEST_F(MessageKinds, leave_thorough_levels_of_lz77_to_the_cpu) {
  for (int level = -1; level <= 10; ++level) {
    payload_.add_seal(plain_, key_, Codec::lz77, 0).level = static_cast<std::int8_t>(level);
    Message& bare = payload_.add(Operation::compress, plain_, 2 * plain_.size());
    bare.codec = Codec::lz77;
    bare.level = static_cast<std::int8_t>(level);
  }
  const Sorted sorted = sort();
  std::vector<std::uint32_t> taken;
  for (const KindGroup& group : sorted.groups)
    taken.insert(taken.end(), group.indexes.begin(), group.indexes.end());
  std::ranges::sort(taken);
  // Levels 0 to 4.
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(sorted.rest.size(), 24 - taken.size());
}

// Level 0 is level 3, of which a device's pages have 0.945 of the ratio.
TEST_F(MessageKinds, take_the_fastest_level_of_gdeflate_alone) {
  for (int level = -1; level <= 10; ++level)
    payload_.add_seal(plain_, key_, Codec::gdeflate, 0).level = static_cast<std::int8_t>(level);
  const Sorted sorted = sort();
  ASSERT_EQ(sorted.groups.size(), 1u);
  EXPECT_EQ(sorted.groups[0].indexes, std::vector<std::uint32_t>{2});
}

// The level at which automatic takes gdeflate for all that gets smaller. At others it takes what
// only the cpu codes, or must look at more than the sample.
TEST_F(MessageKinds, take_automatic_at_its_fastest_level_alone) {
  for (int level = -1; level <= 10; ++level) {
    payload_.add_seal(plain_, key_, Codec::automatic, 0).level = static_cast<std::int8_t>(level);
    Message& bare = payload_.add(Operation::compress, plain_, 2 * plain_.size());
    bare.codec = Codec::automatic;
    bare.level = static_cast<std::int8_t>(level);
  }
  const Sorted sorted = sort();
  ASSERT_EQ(sorted.groups.size(), 2u);
  EXPECT_EQ(sorted.groups[0].indexes, std::vector<std::uint32_t>{4});
  EXPECT_EQ(sorted.groups[1].indexes, std::vector<std::uint32_t>{5});
  for (const KindGroup& group : sorted.groups) {
    EXPECT_EQ(group.kind.codec, Codec::automatic);
    EXPECT_EQ(encoder_of(group.kind).codec, Codec::gdeflate);
    EXPECT_EQ(encoder_of(group.kind).level, 1);
  }
}

// A record does not say at which level it was compressed.
TEST_F(MessageKinds, take_records_of_every_level) {
  payload_.add_seal(plain_, key_, Codec::lz77, 0).level = 9;
  engine_->run(payload_.get());
  const Bytes record(payload_.output(0).begin(), payload_.output(0).end());
  payload_.add_unseal(record, key_, plain_.size());
  const Sorted sorted = sort();
  EXPECT_EQ(sorted.rest, (std::vector<std::uint32_t>{0}));
  ASSERT_EQ(sorted.groups.size(), 1u);
  EXPECT_EQ(sorted.groups[0].indexes, (std::vector<std::uint32_t>{1}));
}

// Devices open what they do not seal.
TEST_F(MessageKinds, take_records_of_every_codec) {
  constexpr std::array codecs = {Codec::none, Codec::lz77, Codec::zstd, Codec::automatic,
                                 Codec::gdeflate};
  for (const Codec codec : codecs)
    payload_.add_unseal(Bytes(3000), key_, plain_.size()).codec = codec;
  payload_.add_seal(plain_, key_, Codec::zstd, 0);
  const Sorted sorted = sort();
  EXPECT_EQ(sorted.rest, (std::vector<std::uint32_t>{5}));
  ASSERT_EQ(sorted.groups.size(), 1u);
  EXPECT_EQ(sorted.groups[0].indexes, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

// A zstd frame is one warp's, so a long one would take its time.
TEST_F(MessageKinds, leave_long_zstd_frames_to_the_cpu) {
  for (const Codec codec : {Codec::zstd, Codec::lz77})
    for (const std::uint64_t size : {std::uint64_t{1} << 20, (std::uint64_t{1} << 20) + 1})
      payload_.add(Operation::decompress, Bytes(3000), size).codec = codec;
  const Sorted sorted = sort();
  EXPECT_EQ(sorted.rest, (std::vector<std::uint32_t>{1}));
  ASSERT_EQ(sorted.groups.size(), 2u);
  EXPECT_EQ(sorted.groups[0].indexes, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(sorted.groups[1].indexes, (std::vector<std::uint32_t>{2, 3}));
}

// Keys of AES, DES and 3DES lie in tables of their own.
TEST_F(MessageKinds, tell_families_of_ciphers_apart) {
  constexpr std::array<BlockCipher, 4> ciphers = {BlockCipher::aes_128, BlockCipher::des,
                                                  BlockCipher::des_ede3, BlockCipher::aes_256};
  for (std::uint32_t i = 0; i < 8; ++i) {
    Message& message = payload_.add(Operation::encrypt, Bytes(24), 24);
    const BlockCipher cipher = ciphers[i % 4];
    message.key_index = payload_.get().add_key(cipher, i < 4 ? CipherMode::ecb : CipherMode::ctr,
                                               ByteView(key_).first(key_size_bytes(cipher)));
  }
  const Sorted sorted = sort();
  // 24 bytes are three blocks of DES and no whole ones of AES.
  EXPECT_EQ(sorted.rest, (std::vector<std::uint32_t>{0, 3}));
  ASSERT_EQ(sorted.groups.size(), 5u);
  const auto is = [&](std::size_t group, CipherFamily family, CryptMode mode,
                      const std::vector<std::uint32_t>& indexes) {
    EXPECT_EQ(sorted.groups[group].kind.family, family) << group;
    EXPECT_EQ(sorted.groups[group].kind.mode, mode) << group;
    EXPECT_EQ(sorted.groups[group].indexes, indexes) << group;
  };
  is(0, CipherFamily::des, CryptMode::ecb, {1});
  is(1, CipherFamily::des_ede3, CryptMode::ecb, {2});
  is(2, CipherFamily::aes, CryptMode::ctr, {4, 7});
  is(3, CipherFamily::des, CryptMode::ctr, {5});
  is(4, CipherFamily::des_ede3, CryptMode::ctr, {6});
}

// The cpu says what is wrong with it; its IV would not tell.
TEST_F(MessageKinds, leave_nonces_that_are_none_to_the_cpu) {
  const Bytes key(key_size_bytes(CipherSuite::des_cbc), 5);
  for (const Byte first : {Byte{0}, Byte{1}}) {
    Message& message = payload_.add(Operation::encrypt, Bytes(16), 16 + tag_size_bytes_max);
    message.key_index = payload_.get().add_key(CipherSuite::des_cbc, key);
    message.iv[0] = first;
  }
  const Sorted sorted = sort();
  EXPECT_EQ(sorted.rest, (std::vector<std::uint32_t>{1}));
  ASSERT_EQ(sorted.groups.size(), 1u);
  EXPECT_EQ(sorted.groups[0].kind.family, CipherFamily::des);
}

// A batch's keys lie in one table.
TEST_F(MessageKinds, leave_records_that_change_their_family_to_the_cpu) {
  const Bytes keys(suite_key_size_bytes_max, 9);
  const auto add_key = [&](CipherSuite suite) {
    return payload_.get().add_key(suite, ByteView(keys).first(key_size_bytes(suite)));
  };
  const std::uint32_t des = add_key(CipherSuite::des_cbc), aes = add_key(CipherSuite::aes_256_cbc);
  for (const std::uint32_t new_key : {des, aes}) {
    Message& message = payload_.add(Operation::reseal, Bytes(300), 400);
    message.key_index = des;
    message.new_key_index = new_key;
  }
  const Sorted sorted = sort();
  EXPECT_EQ(sorted.rest, (std::vector<std::uint32_t>{1}));
  ASSERT_EQ(sorted.groups.size(), 1u);
}

TEST_F(MessageKinds, are_longer_than_a_batch_only_where_a_slot_is_made_for_them) {
  TestPayload payload(*engine_, 40u << 20);
  payload.add(Operation::checksum, Bytes(33u << 20), 0);
  const std::vector<std::uint32_t> all = {0};
  const Sorted usual = sort_by_kind(payload.get(), all);
  EXPECT_TRUE(usual.groups.empty());
  EXPECT_EQ(usual.rest, all);
  const Sorted measured = sort_by_kind(payload.get(), all, 2ull << 30);
  ASSERT_EQ(measured.groups.size(), 1u);
  EXPECT_EQ(measured.groups[0].indexes, all);
}

TEST_F(MessageKinds, take_rsa_of_the_sizes_that_devices_have) {
  Payload& payload = payload_.get();
  const std::uint32_t private_key = payload.add_rsa_private_key(Bytes(1200, 1));
  const std::uint32_t public_key = payload.add_rsa_public_key(Bytes(300, 2));
  const std::uint32_t long_key = payload.add_rsa_private_key(Bytes(4700, 3));
  const std::uint32_t no_rsa = payload.add_key(BlockCipher::aes_256, CipherMode::ctr, key_);
  const auto add = [&](Operation operation, std::uint32_t key, std::size_t size,
                       std::size_t capacity) -> Message& {
    Message& message = payload_.add(operation, Bytes(size), capacity);
    message.key_index = key;
    return message;
  };
  // 0 to 6 are taken.
  add(Operation::rsa_private, private_key, 256, 256);
  add(Operation::rsa_public, public_key, 256, 256);
  add(Operation::rsa_public, private_key, 32, 256).rsa_padding = RsaPadding::oaep_sha256;
  add(Operation::rsa_generate, 0, 0, 3000).rsa_bits = 2048;
  add(Operation::rsa_generate, 0, 0, 3000).rsa_bits = 3072;
  add(Operation::rsa_generate, 0, 0, 3000).rsa_bits = 1024;
  add(Operation::rsa_private, private_key, 128, 128);
  add(Operation::rsa_private, public_key, 256, 256);
  add(Operation::rsa_private, no_rsa, 256, 256);
  add(Operation::rsa_private, long_key, 512, 512);
  add(Operation::rsa_private, 99, 256, 256);
  add(Operation::rsa_private, private_key, 127, 256);
  add(Operation::rsa_private, private_key, 513, 600);
  add(Operation::rsa_public, public_key, 256, 127);
  add(Operation::rsa_public, public_key, 256, 256).rsa_padding = RsaPadding{7};
  add(Operation::rsa_generate, 0, 0, 3000).rsa_bits = 2049;
  add(Operation::rsa_generate, 0, 0, 3000).rsa_bits = 1022;
  add(Operation::rsa_generate, 0, 0, 9000).rsa_bits = 8192;
  add(Operation::rsa_generate, 0, 0, 1000).rsa_bits = 2048;
  const Sorted sorted = sort();
  ASSERT_EQ(sorted.groups.size(), 5u);
  EXPECT_EQ(sorted.groups[0].indexes, (std::vector<std::uint32_t>{0, 6}));
  EXPECT_EQ(sorted.groups[1].indexes, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(sorted.groups[2].kind.rsa_bits, 2048u);
  EXPECT_EQ(sorted.groups[3].kind.rsa_bits, 3072u);
  EXPECT_EQ(sorted.groups[4].kind.rsa_bits, 1024u);
  EXPECT_EQ(sorted.rest.size(), 12u);
}

}  // namespace
}  // namespace nacre::engine
