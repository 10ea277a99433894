// SPDX-License-Identifier: Apache-2.0
// Opening into two places, and what unsealing makes of it: a stream of codec none goes into the
// output before its tag is checked, and nothing of it may stay there if the tag does not match.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <new>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/seal.h"
#include "tests/gpu_engine/all_suites.h"
#include "tests/gpu_engine/allocation_faults.h"
#include "tests/gpu_engine/crypto_implementations.h"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

bool all_are(ByteView bytes, Byte value) {
  return std::ranges::all_of(bytes, [value](Byte b) { return b == value; });
}

class UnsealPlain : public testing::TestWithParam<CipherSuite> {
 protected:
  CipherSuite suite() const { return GetParam(); }
  std::shared_ptr<const AeadKey> random_key(CryptoImplementation implementation) {
    return AeadKey::create(suite(), random_.bytes(key_size_bytes(suite())), implementation).value();
  }

  // Flips a bit, and puts the CRC right.
  void flip(Bytes& record, std::size_t bit) {
    record[bit / 8] = static_cast<Byte>(record[bit / 8] ^ (1u << (bit % 8)));
    const ByteView view(record);
    store_le(record.data() + offsetof(RecordHeader, crc32),
             crc32(crc32(0, view.first(record_aad_header_size_bytes)),
                   view.subspan(record_header_size_bytes)));
  }

  Bytes seal(const AeadKey& key, const Message& message, ByteView plain) {
    Bytes record(record_size_bound(suite(), message.padding, plain.size()));
    const MessageResult result = seal_record(key, suite(), volume_id_, message, plain, record);
    EXPECT_TRUE(result.ok) << result.detail;
    record.resize(result.output_size);
    return record;
  }

  TestRandom random_;
  VolumeId volume_id_ = {7};
};

INSTANTIATE_TEST_SUITE_P(Suites, UnsealPlain, testing::ValuesIn(all_suites()),
                         [](const auto& test) { return test_name(test.param); });

TEST_P(UnsealPlain, opens_into_two_places_what_it_opens_into_one) {
  for (const CryptoImplementation implementation : crypto_implementations()) {
    const auto key = random_key(implementation);
    const Bytes nonce(nonce_size_bytes);
    const Bytes aad = random_.bytes(52);
    EXPECT_EQ(key->opens_in_two(), construction(suite()) == SuiteConstruction::gcm);
    if (!key->opens_in_two()) {
      EXPECT_EQ(error_of(key->open_in_two(nonce, aad, {}, {}, {}, {})), ErrorCode::unsupported);
      continue;
    }
    for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 44u, 45u, 333u, 4096u, 70000u}) {
      const Bytes plain = random_.bytes(size);
      Bytes sealed(size);
      Bytes tag(tag_size_bytes(suite()));
      key->seal(nonce, aad, plain, sealed, tag);
      for (const std::size_t head_size : {0u, 1u, 16u, 44u, 300u}) {
        if (head_size > size) continue;
        for (const bool tampered : {false, true}) {
          Bytes head(head_size, 0xee);
          Bytes rest(size - head_size, 0xee);
          Bytes head_seen;
          const auto choose = [&]() -> MutableByteView {
            head_seen = head;
            return rest;
          };
          tag[5] ^= tampered;
          const auto result = key->open_in_two(nonce, aad, sealed, tag, head, std::cref(choose));
          tag[5] ^= tampered;
          ASSERT_TRUE(std::equal(head_seen.begin(), head_seen.end(), plain.begin()));
          ASSERT_EQ(result.has_value(), !tampered);
          if (tampered) {
            EXPECT_EQ(error_of(result), ErrorCode::tampered);
            EXPECT_TRUE(all_are(head, 0) && all_are(rest, 0));
          } else {
            ASSERT_TRUE(std::equal(head.begin(), head.end(), plain.begin()));
            ASSERT_TRUE(std::equal(rest.begin(), rest.end(),
                                   plain.begin() + static_cast<std::ptrdiff_t>(head_size)));
          }
        }
      }
    }
  }
}

TEST_P(UnsealPlain, gives_back_any_size_and_touches_nothing_behind_it) {
  for (const CryptoImplementation implementation : crypto_implementations()) {
    const auto key = random_key(implementation);
    for (const Padding padding : {Padding::none, Padding::padme}) {
      for (const std::size_t size : {0u, 1u, 3u, 4u, 15u, 16u, 17u, 43u, 44u, 45u, 63u, 64u, 65u,
                                     1000u, 4095u, 65535u, 65536u, 65537u, 1048576u}) {
        const Message message = {.codec = Codec::none, .padding = padding, .counter = 3};
        const Bytes plain = random_.bytes(size);
        const Bytes record = seal(*key, message, plain);
        for (const std::size_t more : {0u, 100u, 300000u}) {
          Bytes out(size + more, 0xee);
          const MessageResult result =
              unseal_record(*key, suite(), volume_id_, message, record, out);
          ASSERT_TRUE(result.ok) << size << ": " << result.detail;
          ASSERT_EQ(result.output_size, size);
          EXPECT_EQ(result.codec, Codec::none);
          ASSERT_TRUE(std::equal(plain.begin(), plain.end(), out.begin()));
          EXPECT_TRUE(all_are(ByteView(out).subspan(size), 0xee)) << size;
        }
        if (size == 0) continue;
        Bytes out(size - 1, 0xee);
        const MessageResult result = unseal_record(*key, suite(), volume_id_, message, record, out);
        EXPECT_EQ(result.error, ErrorCode::corrupt);
        EXPECT_TRUE(!result.ok && all_are(out, 0xee));
      }
    }
  }
}

// With flipped bits the unverified header may have any value. So the output ends at a guard page,
// which shows writes past its end.
TEST_P(UnsealPlain, leaves_nothing_of_a_record_that_was_tampered_with) {
  for (const CryptoImplementation implementation : crypto_implementations()) {
    const auto key = random_key(implementation);
    GuardedMemory memory(10000);
    for (const Codec codec : {Codec::none, Codec::lz77}) {
      for (const std::size_t size : {1u, 45u, 1000u, 9999u}) {
        const Message message = {.codec = codec};
        const Bytes plain = make_data(DataKind::text, size, random_);
        const Bytes record = seal(*key, message, plain);
        const auto expect_nothing = [&](std::size_t bit) {
          Bytes hostile = record;
          flip(hostile, bit);
          const MutableByteView out = memory.last(size);
          std::ranges::fill(out, Byte{0xee});
          const MessageResult result =
              unseal_record(*key, suite(), volume_id_, message, hostile, out);
          EXPECT_EQ(result.error, ErrorCode::tampered) << bit;
          // Text has neither of the two.
          EXPECT_TRUE(!result.ok && (all_are(out, 0xee) || all_are(out, 0))) << bit;
        };
        const std::size_t body = 8 * record_header_size_bytes;
        for (std::size_t bit = 0; bit < 8 * 12; ++bit)  // codec and sizes
          expect_nothing(body + bit);
        for (int round = 0; round < 50; ++round)
          expect_nothing(body + random_.below(8 * record.size() - body));
        expect_nothing(8 * record.size() - 1);  // of the tag
      }
    }
  }
}

TEST_P(UnsealPlain, leaves_nothing_of_another_record_than_was_asked_for) {
  for (const CryptoImplementation implementation : crypto_implementations()) {
    const auto key = random_key(implementation);
    Message message = {.codec = Codec::none, .check_identity = true};
    const Bytes plain = make_data(DataKind::text, 5000, random_);
    const Bytes record = seal(*key, message, plain);
    message.identity[0] = 1;
    Bytes out(plain.size(), 0xee);
    const MessageResult result = unseal_record(*key, suite(), volume_id_, message, record, out);
    EXPECT_EQ(result.error, ErrorCode::tampered);
    EXPECT_TRUE(!result.ok && (all_are(out, 0xee) || all_are(out, 0)));
  }
}

// The pool asks for memory when it takes back its first context, behind the decryption.
TEST(AeadOpenssl, leaves_nothing_where_memory_runs_out) {
  const auto key =
      AeadKey::create(CipherSuite::aes_256_gcm, Bytes(32, 1), CryptoImplementation::openssl)
          .value();
  const auto sealing =
      AeadKey::create(CipherSuite::aes_256_gcm, Bytes(32, 1), CryptoImplementation::openssl)
          .value();
  const Bytes nonce(nonce_size_bytes);
  Bytes sealed(100, 'x');
  Bytes tag(16);
  sealing->seal(nonce, {}, sealed, sealed, tag);
  Bytes out(sealed.size(), 0xee);
  bool ran_out = false;
  {
    const AllocationFaults faults(0);
    try {
      static_cast<void>(key->open(nonce, {}, sealed, tag, out));
    } catch (const std::bad_alloc&) {
      ran_out = true;
    }
  }
  EXPECT_TRUE(ran_out);
  EXPECT_TRUE(all_are(out, 0));
}

}  // namespace
}  // namespace nacre::engine
