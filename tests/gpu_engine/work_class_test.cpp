// SPDX-License-Identifier: Apache-2.0
// Which messages count as one class, and as how much work.
#include "gpu_engine/plan/work_class.h"

#include <gtest/gtest.h>

#include <set>

#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

// For failures.
void PrintTo(const WorkClass& work, std::ostream* out) {
  *out << to_string(work);
}

namespace {

TEST(WorkClass, has_an_index_and_a_name_of_its_own) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < work_class_count; ++i) {
    EXPECT_EQ(index_of(work_class_at(i)), i);
    names.insert(to_string(work_class_at(i)));
  }
  EXPECT_EQ(names.size(), work_class_count);
  EXPECT_TRUE(names.contains("seal gdeflate"));
  EXPECT_TRUE(names.contains("unseal-hmac none"));
  EXPECT_TRUE(names.contains("rsa-generate"));
}

TEST(WorkClass, is_told_apart_by_suite_and_mode) {
  Payload payload;
  const Bytes key(suite_key_size_bytes_max, 1);
  const auto suite_key = [&](CipherSuite suite) {
    return payload.add_key(suite, ByteView(key).first(key_size_bytes(suite)));
  };
  const std::uint32_t gcm = suite_key(CipherSuite::aes_256_gcm);
  const std::uint32_t ctr_hmac = suite_key(CipherSuite::aes_256_ctr);
  const std::uint32_t cbc_hmac = suite_key(CipherSuite::aes_128_cbc);
  const ByteView cipher_key = ByteView(key).first(32);
  const std::uint32_t cbc = payload.add_key(BlockCipher::aes_256, CipherMode::cbc, cipher_key);
  const std::uint32_t ofb = payload.add_key(BlockCipher::aes_256, CipherMode::ofb, cipher_key);
  const std::uint32_t ctr = payload.add_key(BlockCipher::aes_256, CipherMode::ctr, cipher_key);
  const auto class_with = [&](Operation operation, std::uint32_t key_index,
                              Codec codec = Codec::lz77, std::uint32_t new_key_index = 0) {
    return class_of(payload, {.operation = operation,
                              .codec = codec,
                              .key_index = key_index,
                              .input_size = 100,
                              .output_capacity = 300,
                              .new_key_index = new_key_index});
  };
  EXPECT_EQ(class_with(Operation::seal, gcm), (WorkClass{WorkKind::seal, Codec::lz77}));
  EXPECT_EQ(class_with(Operation::seal, gcm, Codec::none),
            (WorkClass{WorkKind::seal, Codec::none}));
  EXPECT_EQ(class_with(Operation::unseal, gcm), (WorkClass{WorkKind::unseal, Codec::lz77}));
  EXPECT_EQ(class_with(Operation::reseal, gcm), WorkClass{WorkKind::reseal});
  EXPECT_EQ(class_with(Operation::encrypt, gcm), WorkClass{WorkKind::crypt});
  for (const std::uint32_t hmac : {ctr_hmac, cbc_hmac}) {
    EXPECT_EQ(class_with(Operation::seal, hmac), (WorkClass{WorkKind::seal_hmac, Codec::lz77}));
    EXPECT_EQ(class_with(Operation::seal, hmac, Codec::none),
              (WorkClass{WorkKind::seal_hmac, Codec::none}));
    EXPECT_EQ(class_with(Operation::unseal, hmac), (WorkClass{WorkKind::unseal_hmac, Codec::lz77}));
    EXPECT_EQ(class_with(Operation::reseal, hmac), WorkClass{WorkKind::reseal_hmac});
    EXPECT_EQ(class_with(Operation::reseal, gcm, Codec::lz77, hmac),
              WorkClass{WorkKind::reseal_hmac});
    EXPECT_EQ(class_with(Operation::encrypt, hmac), WorkClass{WorkKind::crypt_hmac});
    EXPECT_EQ(class_with(Operation::decrypt, hmac), WorkClass{WorkKind::crypt_hmac});
  }
  EXPECT_EQ(class_with(Operation::encrypt, cbc), WorkClass{WorkKind::crypt_serial});
  EXPECT_EQ(class_with(Operation::decrypt, cbc), WorkClass{WorkKind::crypt});
  EXPECT_EQ(class_with(Operation::decrypt, ofb), WorkClass{WorkKind::crypt_serial});
  EXPECT_EQ(class_with(Operation::encrypt, ctr), WorkClass{WorkKind::crypt});
  for (const BlockCipher cipher : {BlockCipher::des, BlockCipher::des_ede3}) {
    const ByteView des_key = ByteView(key).first(key_size_bytes(cipher));
    const std::uint32_t des_cbc = payload.add_key(cipher, CipherMode::cbc, des_key);
    const std::uint32_t des_ofb = payload.add_key(cipher, CipherMode::ofb, des_key);
    EXPECT_EQ(class_with(Operation::encrypt, des_cbc), WorkClass{WorkKind::crypt_des_serial});
    EXPECT_EQ(class_with(Operation::decrypt, des_cbc), WorkClass{WorkKind::crypt_des});
    EXPECT_EQ(class_with(Operation::encrypt, des_ofb), WorkClass{WorkKind::crypt_des_serial});
  }
}

// Serial is what chains each block to the one before: OFB both ways, CBC where it encrypts.
TEST(WorkClass, is_that_of_each_cipher_mode_and_direction) {
  struct Case {
    CipherMode mode;
    Operation operation;
    bool serial;
  };
  Payload payload;
  const Bytes key(32, 1);
  for (const BlockCipher cipher : {BlockCipher::aes_128, BlockCipher::aes_192, BlockCipher::aes_256,
                                   BlockCipher::des, BlockCipher::des_ede3}) {
    const bool is_des = cipher == BlockCipher::des || cipher == BlockCipher::des_ede3;
    for (const Case& of : {Case{CipherMode::ecb, Operation::encrypt, false},
                           Case{CipherMode::ecb, Operation::decrypt, false},
                           Case{CipherMode::cbc, Operation::encrypt, true},
                           Case{CipherMode::cbc, Operation::decrypt, false},
                           Case{CipherMode::ofb, Operation::encrypt, true},
                           Case{CipherMode::ofb, Operation::decrypt, true},
                           Case{CipherMode::ctr, Operation::encrypt, false},
                           Case{CipherMode::ctr, Operation::decrypt, false}}) {
      const Message message = {.operation = of.operation,
                               .key_index = payload.add_key(
                                   cipher, of.mode, ByteView(key).first(key_size_bytes(cipher))),
                               .input_size = 80,
                               .output_capacity = 80};
      const WorkKind wanted = is_des ? of.serial ? WorkKind::crypt_des_serial : WorkKind::crypt_des
                              : of.serial ? WorkKind::crypt_serial
                                          : WorkKind::crypt;
      EXPECT_EQ(class_of(payload, message), WorkClass{wanted})
          << "cipher " << static_cast<int>(cipher) << ", mode " << static_cast<int>(of.mode)
          << (of.operation == Operation::encrypt ? ", encrypt" : ", decrypt");
      EXPECT_EQ(size_of(message), 80u);
    }
  }
}

// Other fields of the messages do not matter: no key, padding, a label.
TEST(WorkClass, of_rsa_is_the_operations_alone) {
  Payload payload;
  const std::uint32_t private_key = payload.add_rsa_private_key(Bytes(100, 1));
  const std::uint32_t public_key = payload.add_rsa_public_key(Bytes(100, 2));
  for (const RsaPadding padding : {RsaPadding::none, RsaPadding::oaep_sha256}) {
    for (const std::uint32_t key : {private_key, public_key, 77u}) {
      const auto class_with = [&](Operation operation) {
        return class_of(payload, {.operation = operation,
                                  .codec = Codec::lz77,
                                  .key_index = key,
                                  .input_size = 256,
                                  .output_capacity = 256,
                                  .aad_size = 5,
                                  .rsa_bits = 2048,
                                  .rsa_padding = padding});
      };
      EXPECT_EQ(class_with(Operation::rsa_private), WorkClass{WorkKind::rsa_private});
      EXPECT_EQ(class_with(Operation::rsa_public), WorkClass{WorkKind::rsa_public});
      EXPECT_EQ(class_with(Operation::rsa_generate), WorkClass{WorkKind::rsa_generate});
    }
  }
}

TEST(WorkClass, counts_rsa_by_its_work) {
  const Payload payload;
  Message message = {
      .operation = Operation::rsa_private, .input_size = 256, .output_capacity = 256};
  EXPECT_EQ(class_of(payload, message), WorkClass{WorkKind::rsa_private});
  EXPECT_EQ(size_of(message), rsa_private_bytes);
  message.input_size = 512;
  EXPECT_EQ(size_of(message), 8 * rsa_private_bytes);
  message.operation = Operation::rsa_public;
  EXPECT_EQ(class_of(payload, message), WorkClass{WorkKind::rsa_public});
  EXPECT_EQ(size_of(message), rsa_public_bytes);
  message.operation = Operation::rsa_generate;
  message.rsa_bits = 4096;
  EXPECT_EQ(class_of(payload, message), WorkClass{WorkKind::rsa_generate});
  EXPECT_EQ(size_of(message), 16 * rsa_generate_bytes);
  // Nonsense stays within bounds.
  message.rsa_bits = 0xffffffff;
  EXPECT_EQ(size_of(message), 256 * rsa_generate_bytes);
  message.operation = Operation::rsa_private;
  message.input_size = 0;
  EXPECT_EQ(size_of(message), 1u);
}

TEST(WorkClass, is_told_apart_by_codec) {
  Payload payload;
  const Bytes key(suite_key_size_bytes_max, 1);
  const std::uint32_t gcm = payload.add_key(
      CipherSuite::aes_256_gcm, ByteView(key).first(key_size_bytes(CipherSuite::aes_256_gcm)));
  const std::uint32_t hmac = payload.add_key(
      CipherSuite::aes_256_cbc, ByteView(key).first(key_size_bytes(CipherSuite::aes_256_cbc)));
  struct Case {
    Operation operation;
    std::uint32_t key_index;
    WorkKind kind;
  };
  for (const Case& of : {Case{Operation::seal, gcm, WorkKind::seal},
                         Case{Operation::seal, hmac, WorkKind::seal_hmac},
                         Case{Operation::unseal, gcm, WorkKind::unseal},
                         Case{Operation::unseal, hmac, WorkKind::unseal_hmac},
                         Case{Operation::compress, gcm, WorkKind::compress},
                         Case{Operation::decompress, gcm, WorkKind::decompress}}) {
    const auto class_with = [&](Codec codec, std::uint64_t input_size = 20000) {
      return class_of(payload, {.operation = of.operation,
                                .codec = codec,
                                .key_index = of.key_index,
                                .input_size = input_size,
                                .output_capacity = 65536});
    };
    const bool unseals = of.operation == Operation::unseal;
    for (const Codec codec : costed_codecs) {
      if (codec == Codec::none && unseals) continue;
      EXPECT_EQ(class_with(codec), (WorkClass{of.kind, codec}));
    }
    EXPECT_EQ(class_with(Codec::automatic), (WorkClass{of.kind, Codec::gdeflate}));
    EXPECT_EQ(class_with(static_cast<Codec>(77)), (WorkClass{of.kind, Codec::gdeflate}));
    if (!unseals) continue;
    EXPECT_EQ(class_of(payload,
                       {.operation = of.operation,
                        .key_index = of.key_index,
                        .input_size = 20000,
                        .output_capacity = 65536},
                       Codec::huffman),
              (WorkClass{of.kind, Codec::huffman}));
    // Without a hint the codec is unknown, and lz77 is assumed. A record that is as long as its
    // plain bytes was not compressed, whatever the hint says.
    EXPECT_EQ(class_with(Codec::none), (WorkClass{of.kind, Codec::lz77}));
    EXPECT_EQ(class_with(Codec::gdeflate, 65636), (WorkClass{of.kind, Codec::none}));
  }
}

}  // namespace
}  // namespace nacre::engine
