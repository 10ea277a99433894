// SPDX-License-Identifier: Apache-2.0
// The codes that `nacre-papers` compares with the engine. The papers' plain codes are checked
// against the engine (which other tests check against OpenSSL, zlib and published vectors), and by
// undoing their own output. If there is a device, the papers' ways on it are checked as well.
#include <gtest/gtest.h>

#include "gpu_engine/baseline/baseline.h"
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cipher/block_cipher.h"
#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/seeds/aes_plain.h"
#include "gpu_engine/seeds/crc_plain.h"
#include "gpu_engine/seeds/des_plain.h"
#include "gpu_engine/seeds/device_codes.h"
#include "gpu_engine/seeds/packers.h"
#include "gpu_engine/seeds/rsa_plain.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::seeds {
namespace {

Bytes key_of(std::size_t size) {
  Bytes key;
  for (std::size_t i = 0; i < size; ++i)
    key.push_back(static_cast<Byte>(61 * i + 7));
  return key;
}

// The result of the last baseline of the bench, which is OpenSSL. Its counters have 128 bits.
Bytes by_library(BlockCipher cipher, CipherMode mode, Operation operation, ByteView key,
                 ByteView in, const CipherIv& iv = {}) {
  const BaselineTask task = {
      .operation = operation,
      .key_use = {.kind = KeyKind::block_cipher, .cipher = cipher, .mode = mode},
      .key = key,
      .iv = iv};
  const auto libraries = find_baselines(task);
  EXPECT_FALSE(libraries.empty());
  Bytes out(in.size());
  std::vector<BaselinePiece> pieces = {{in, out, 0}};
  EXPECT_TRUE(libraries.back().make()->run(pieces));
  return out;
}

Bytes data_of(DataKind kind, std::size_t size) {
  static TestRandom random;
  return make_data(kind, size, random);
}

TEST(SeedCrc, agrees_with_the_engine_at_every_edge) {
  for (const std::size_t size : edge_sizes) {
    const Bytes data = data_of(DataKind::random, size);
    EXPECT_EQ(crc32_sarwate(data), crc32(0, data)) << size;
  }
}

TEST(SeedAes, computes_what_the_library_does) {
  const Bytes plain = data_of(DataKind::random, 16 * 257);
  const std::pair<BlockCipher, std::size_t> lengths[] = {
      {BlockCipher::aes_128, 16}, {BlockCipher::aes_192, 24}, {BlockCipher::aes_256, 32}};
  for (const auto& [cipher, size] : lengths) {
    const Bytes key = key_of(size);
    const PlainAes aes(key);
    const Bytes coded = by_library(cipher, CipherMode::ecb, Operation::encrypt, key, plain);
    Bytes out(plain.size());
    aes.encrypt_bytewise(plain, out);
    EXPECT_EQ(out, coded) << size;
    aes.encrypt_by_tables(plain, out);
    EXPECT_EQ(out, coded) << size;
    aes.decrypt_bytewise(coded, out);
    EXPECT_EQ(out, plain) << size;
    aes.decrypt_by_tables(coded, out);
    EXPECT_EQ(out, plain) << size;
    // A counter whose lower half runs over.
    CipherIv iv;
    iv.fill(0xff);
    iv[2] = 9;
    aes.apply_counter(plain, out, iv);
    EXPECT_EQ(out, by_library(cipher, CipherMode::ctr, Operation::encrypt, key, plain, iv));
    aes.encrypt_cbc(plain, out, iv);
    EXPECT_EQ(out, by_library(cipher, CipherMode::cbc, Operation::encrypt, key, plain, iv));
  }
}

TEST(SeedDes, computes_what_the_library_does) {
  const Bytes plain = data_of(DataKind::random, 8 * 513);
  const Bytes key = key_of(8);
  const PlainDes des(key);
  const Bytes coded = by_library(BlockCipher::des, CipherMode::ecb, Operation::encrypt, key, plain);
  Bytes out(plain.size());
  des.encrypt(plain, out);
  EXPECT_EQ(out, coded);
  des.decrypt(coded, out);
  EXPECT_EQ(out, plain);
}

void check_key(const RsaNumbers& numbers, int bits) {
  const std::size_t size = static_cast<std::size_t>(bits) / 8;
  const BaselineTask task = {.operation = Operation::rsa_public, .key = numbers.public_der};
  const auto library = find_baselines(task).front().make();
  TestRandom random;
  for (int i = 0; i < 8; ++i) {
    Bytes number(size), expected(size), out(size), back(size);
    random.fill(number);
    number[0] = 0;
    // The first three numbers are among the smallest possible.
    if (i < 3) std::fill(number.begin(), number.end(), Byte{0});
    if (i < 3) number.back() = static_cast<Byte>(i);
    std::vector<BaselinePiece> pieces = {{number, expected, 0}};
    ASSERT_TRUE(library->run(pieces));
    PlainPower(numbers.modulus, numbers.public_exponent).apply(number, out);
    EXPECT_EQ(out, expected);
    PlainPower(numbers.modulus, numbers.private_exponent).apply(out, back);
    EXPECT_EQ(back, number);
  }
}

TEST(SeedRsa, computes_what_openssl_does) {
  for (const int bits : {512, 1024, 2048})
    check_key(make_rsa_numbers(bits).value(), bits);
}

TEST(SeedRsa, makes_keys_that_openssl_takes) {
  const RsaNumbers numbers = search_rsa_numbers(1024).value();
  EXPECT_EQ(numbers.modulus.size(), 128u);
  EXPECT_NE(numbers.modulus[0] & 0x80, 0);
  check_key(numbers, 1024);
  EXPECT_TRUE(RsaPrivateKey::from_der(search_rsa_numbers(2048).value().private_der));
}

struct Packer {
  const char* name;
  std::size_t (*pack)(ByteView, MutableByteView);
  bool (*unpack)(ByteView, MutableByteView);
};
const Packer packers[] = {{"rle", pack_rle, unpack_rle},
                          {"lz77", pack_lz77, unpack_lz77},
                          {"huffman", pack_huffman, unpack_huffman},
                          {"lzw", pack_lzw, unpack_lzw}};

Bytes packed(const Packer& packer, ByteView plain) {
  Bytes out(packed_size_bound(plain.size()));
  out.resize(packer.pack(plain, out));
  return out;
}

TEST(SeedPackers, undo_what_they_did) {
  for (const Packer& packer : packers) {
    for (const DataKind kind : data_kinds) {
      for (const std::size_t size : edge_sizes) {
        // Zeros have as many places to look at as there are in the window.
        if (size > 131072 && kind == DataKind::zero) continue;
        const Bytes plain = data_of(kind, size);
        const Bytes stream = packed(packer, plain);
        Bytes out(size);
        ASSERT_TRUE(packer.unpack(stream, out)) << packer.name << ' ' << size;
        EXPECT_TRUE(out == plain) << packer.name << ' ' << size;
      }
    }
  }
}

TEST(SeedPackers, make_text_smaller_but_for_rle) {
  const Bytes plain = data_of(DataKind::text, 1 << 18);
  for (const Packer& packer : packers) {
    const std::size_t size = packed(packer, plain).size();
    if (packer.pack == pack_rle)
      EXPECT_LE(size, plain.size() + plain.size() / 100 + 1);
    else
      EXPECT_LT(size, plain.size()) << packer.name;
  }
  const Bytes zeros(100000);
  EXPECT_LT(packed(packers[0], zeros).size(), 2000u);
}

// A dictionary that is full, and codes that name the entry being made.
TEST(SeedPackers, lzw_fills_its_dictionary) {
  const Bytes plain = data_of(DataKind::random, 400000);
  const Bytes stream = packed(packers[3], plain);
  Bytes out(plain.size());
  ASSERT_TRUE(unpack_lzw(stream, out));
  EXPECT_TRUE(out == plain);
}

TEST(SeedPackers, refuse_streams_that_are_cut_off) {
  TestRandom random;
  for (const Packer& packer : packers) {
    const Bytes plain = make_data(DataKind::mixed, 5000, random);
    const Bytes stream = packed(packer, plain);
    for (int i = 0; i < 200; ++i) {
      const Bytes part(stream.begin(),
                       stream.begin() + std::ptrdiff_t(random.below(stream.size())));
      Bytes out(plain.size());
      EXPECT_FALSE(packer.unpack(part, out)) << packer.name << ' ' << part.size();
      // Whatever it makes of a wrong byte, nothing outside is touched: the sanitizers look.
      Bytes broken = stream;
      broken[random.below(broken.size())] ^= static_cast<Byte>(1 + random.below(255));
      static_cast<void>(packer.unpack(broken, out));
    }
  }
}

// The papers' ways on a device, on what the bench gives them.
TEST(SeedDevice, every_way_computes_what_the_plain_code_does) {
  const Bytes plain = data_of(DataKind::random, 1 << 16);
  const auto probe = crc_on_device(CrcWay::reduction, plain, 1);
  if (!probe && probe.error().code == ErrorCode::unsupported) {
    ASSERT_STRNE(std::getenv("NACRE_REQUIRE_GPU") ? std::getenv("NACRE_REQUIRE_GPU") : "", "1")
        << probe.error().message;
    GTEST_SKIP() << "SeedDevice: " << probe.error().message;
  }
  for (const std::size_t size : {4u, 5u, 127u, 129u, 16384u, 65536u}) {
    for (const CrcWay way : {CrcWay::host_xor, CrcWay::reduction, CrcWay::half_block,
                             CrcWay::table_on_device, CrcWay::without_tables}) {
      const ByteView message = ByteView(plain).first(size);
      const auto outcome = crc_on_device(way, message, 1);
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->crc, crc32(0, message)) << size << ' ' << static_cast<int>(way);
    }
  }
  const Bytes long_key = key_of(32), short_key = key_of(16);
  for (const std::size_t size : {16u, 4096u, 4112u, 65536u}) {
    const ByteView in = ByteView(plain).first(size);
    Bytes coded(size), out(size);
    PlainAes(long_key).encrypt_by_tables(in, coded);
    for (const AesStep step :
         {AesStep::global_memory, AesStep::constant_memory, AesStep::shared_memory,
          AesStep::unrolled, AesStep::schedule_on_device}) {
      ASSERT_TRUE(aes_on_device(step, true, long_key, in, out, 1));
      EXPECT_TRUE(out == coded) << size << ' ' << static_cast<int>(step);
      ASSERT_TRUE(aes_on_device(step, false, long_key, coded, out, 1));
      EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()))
          << size << ' ' << static_cast<int>(step);
    }
    CipherIv counter;
    counter.fill(0xff);
    counter[15] = 0xf0;
    PlainAes(short_key).apply_counter(in, coded, counter);
    for (const TableLayout layout : {TableLayout::single, TableLayout::quad}) {
      for (const TableMemory memory : {TableMemory::constant, TableMemory::texture,
                                       TableMemory::shared, TableMemory::shared_copies}) {
        ASSERT_TRUE(counter_on_device(memory, layout, short_key, counter, in, out, 1));
        EXPECT_TRUE(out == coded) << size << ' ' << static_cast<int>(memory);
      }
    }
  }
  for (const TableMemory memory :
       {TableMemory::constant, TableMemory::texture, TableMemory::shared}) {
    for (const bool random : {false, true})
      EXPECT_TRUE(table_reads_on_device(memory, random, 1 << 20, 1));
  }
  EXPECT_TRUE(strided_reads_on_device(1000, 17, 1));
}

}  // namespace
}  // namespace nacre::engine::seeds
