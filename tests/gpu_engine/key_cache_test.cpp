// SPDX-License-Identifier: Apache-2.0
// Expanded keys are kept, bounded and shared.
#include "gpu_engine/cpu/key_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

Bytes numbered_key(int number) {
  Bytes key(32);
  store_le(key.data(), number);
  return key;
}

std::shared_ptr<const AeadKey> get(KeyCache& cache, int number) {
  return std::get<std::shared_ptr<const AeadKey>>(cache.get({}, numbered_key(number)).value());
}

TEST(KeyCache, expands_a_key_once) {
  KeyCache cache(4);
  const auto first = get(cache, 1);
  EXPECT_EQ(get(cache, 1), first);
  EXPECT_NE(get(cache, 2), first);
  EXPECT_EQ(get(cache, 1), first);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(KeyCache, drops_the_key_that_was_not_used_for_longest) {
  KeyCache cache(3);
  std::weak_ptr<const AeadKey> one = get(cache, 1);
  std::weak_ptr<const AeadKey> two = get(cache, 2);
  std::weak_ptr<const AeadKey> three = get(cache, 3);
  get(cache, 1);
  get(cache, 4);
  EXPECT_FALSE(one.expired());
  EXPECT_TRUE(two.expired());
  EXPECT_FALSE(three.expired());
  EXPECT_EQ(cache.size(), 3u);
}

TEST(KeyCache, a_dropped_key_lives_on_with_its_users) {
  KeyCache cache(1);
  const auto used = get(cache, 1);
  get(cache, 2);
  Bytes tag(16);
  used->seal(Bytes(12), {}, {}, {}, tag);
  EXPECT_NE(tag, Bytes(16));
}

TEST(KeyCache, forgets_all_keys_but_those_that_are_used) {
  KeyCache cache(4);
  const std::weak_ptr<const AeadKey> one = get(cache, 1);
  const auto two = get(cache, 2);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_TRUE(one.expired());
  EXPECT_EQ(two.use_count(), 1);
  EXPECT_NE(get(cache, 2), two);
}

TEST(KeyCache, keeps_nothing_of_a_key_that_is_not_valid) {
  KeyCache cache(4);
  EXPECT_EQ(error_of(cache.get({}, Bytes(31))), ErrorCode::invalid_argument);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(KeyCache, one_key_for_two_uses_is_two_keys) {
  KeyCache cache(8);
  const Bytes raw(32, 0x5a);
  const KeyUse gcm = {.kind = KeyKind::suite, .suite = CipherSuite::aes_256_gcm};
  const KeyUse cbc = {.kind = KeyKind::block_cipher, .mode = CipherMode::cbc};
  const KeyUse ctr = {.kind = KeyKind::block_cipher, .mode = CipherMode::ctr};
  EXPECT_TRUE(std::holds_alternative<std::shared_ptr<const AeadKey>>(cache.get(gcm, raw).value()));
  for (const KeyUse& use : {cbc, ctr}) {
    const KeyObject object = cache.get(use, raw).value();
    EXPECT_EQ(std::get<std::shared_ptr<const CipherKey>>(object)->mode(), use.mode);
  }
  EXPECT_EQ(cache.size(), 3u);
}

TEST(KeyCache, serves_many_threads) {
  KeyCache cache(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache] {
      for (int i = 0; i < 500; ++i) {
        Bytes tag(16);
        get(cache, i % 16)->seal(Bytes(12), {}, {}, {}, tag);
        EXPECT_NE(tag, Bytes(16));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_LE(cache.size(), 8u);
}

}  // namespace
}  // namespace nacre::engine
