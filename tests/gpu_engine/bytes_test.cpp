// SPDX-License-Identifier: Apache-2.0
// Byte helpers and error names.
#include "gpu_engine/base/bytes.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "gpu_engine/base/result.h"
#include "gpu_engine/base/secret_pool.h"

namespace nacre {
namespace {

TEST(Bytes, wipe_zeroes_all_and_only_what_it_is_given) {
  Bytes bytes(64, 0xaa);
  wipe(MutableByteView(bytes).subspan(8, 48));
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 48);
  EXPECT_EQ(bytes[7], 0xaa);
  EXPECT_EQ(bytes[56], 0xaa);
  wipe({});
}

TEST(Bytes, constant_time_comparison_sees_every_bit_and_the_size) {
  const Bytes a(40, 0x5a);
  EXPECT_TRUE(equal_constant_time(a, Bytes(a)));
  EXPECT_TRUE(equal_constant_time({}, {}));
  EXPECT_FALSE(equal_constant_time(a, ByteView(a).first(39)));
  for (std::size_t bit = 0; bit < a.size() * 8; ++bit) {
    Bytes b = a;
    b[bit / 8] = static_cast<Byte>(b[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_FALSE(equal_constant_time(a, b)) << "bit " << bit;
  }
}

TEST(Bytes, error_codes_have_names_of_their_own) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::stale); ++code)
    names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::stale) + 1);
  EXPECT_EQ(to_string(ErrorCode::rolled_back), "rolled back");
}

TEST(SecretBytes, holds_what_it_copies_and_moves_it_away) {
  const Bytes text = {1, 2, 3, 4, 5};
  SecretBytes secret{ByteView(text)};
  EXPECT_TRUE(std::ranges::equal(secret.view(), text));
  const SecretBytes copy = secret.clone();
  const SecretBytes moved = std::move(secret);
  EXPECT_TRUE(std::ranges::equal(moved.view(), text));
  EXPECT_TRUE(std::ranges::equal(copy.view(), text));
  EXPECT_TRUE(secret.empty());  // NOLINT: the moved-from state is part of the contract
  EXPECT_TRUE(SecretBytes(0).empty());
}

TEST(SecretBytes, assignment_keeps_one_owner) {
  SecretBytes a{ByteView(Bytes(100, 1))};
  SecretBytes b{ByteView(Bytes(5000, 2))};
  a = std::move(b);
  EXPECT_EQ(a.size(), 5000u);
  EXPECT_EQ(a.view().back(), 2);
  SecretBytes& same = a;
  a = std::move(same);
  EXPECT_EQ(a.size(), 5000u);
}

TEST(SecretBytes, are_zeroed_at_first_and_again_when_the_memory_is_reused) {
  for (const std::size_t size : {1u, 32u, 64u, 65u, 4096u, 4097u, 100000u}) {
    for (int round = 0; round < 3; ++round) {
      SecretBytes secret(size);
      EXPECT_EQ(std::count(secret.view().begin(), secret.view().end(), 0),
                static_cast<std::ptrdiff_t>(size));
      std::ranges::fill(secret.mutable_view(), Byte{0xff});
    }
  }
}

TEST(SecretPool, packs_small_secrets_and_gives_slabs_back) {
  const std::size_t before = secret_pool_stats().used_slab_count;
  {
    std::vector<SecretBytes> keys;
    for (int i = 0; i < 1000; ++i)
      keys.emplace_back(std::size_t{32});
    // A slab has 256 blocks of 64 bytes.
    EXPECT_LE(secret_pool_stats().used_slab_count, before + 4);
    std::set<const Byte*> places;
    for (const SecretBytes& key : keys)
      places.insert(key.view().data());
    EXPECT_EQ(places.size(), keys.size());
  }
  EXPECT_LE(secret_pool_stats().used_slab_count, before);
}

TEST(SecretPool, aligns_blocks_and_keeps_them_apart) {
  std::vector<SecretBytes> secrets;
  for (std::size_t size = 1; size <= 9000; size += 37) {
    secrets.emplace_back(size);
    std::ranges::fill(secrets.back().mutable_view(), static_cast<Byte>(size));
  }
  std::size_t size = 1;
  for (const SecretBytes& secret : secrets) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(secret.view().data()) % secret_block_size_bytes_min,
              0u);
    EXPECT_EQ(std::ranges::count(secret.view(), static_cast<Byte>(size)),
              static_cast<std::ptrdiff_t>(size));
    size += 37;
  }
}

TEST(SecretPool, goes_on_when_its_region_is_full) {
  std::vector<SecretBytes> secrets;
  for (std::size_t i = 0; i < secret_pool_size_bytes / secret_block_size_bytes_max + 50; ++i) {
    secrets.emplace_back(secret_block_size_bytes_max);
    secrets.back().mutable_view()[0] = static_cast<Byte>(i);
  }
  for (std::size_t i = 0; i < secrets.size(); ++i)
    EXPECT_EQ(secrets[i].view()[0], static_cast<Byte>(i));
}

TEST(SecretPool, serves_many_threads) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (unsigned i = 0; i < 2000; ++i) {
        SecretBytes secret(1 + (i * 31 + t) % 5000);
        std::ranges::fill(secret.mutable_view(), static_cast<Byte>(t + 1));
        EXPECT_EQ(std::ranges::count(secret.view(), static_cast<Byte>(t + 1)),
                  static_cast<std::ptrdiff_t>(secret.size()));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

#ifndef NACRE_SANITIZER
TEST(SecretPool, locks_its_slabs_and_locks_them_again_in_a_child) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur < (1u << 20)) {
    std::puts("skipped: SecretPool locking: RLIMIT_MEMLOCK is below 1 MiB");
    GTEST_SKIP();
  }
  const SecretBytes secret(32);
  EXPECT_GT(secret_pool_stats().locked_slab_count, 0u);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Locked again, and usable.
    const SecretBytes another(32);
    _exit(secret_pool_stats().locked_slab_count > 0 && another.size() == 32 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(SecretPool, works_where_nothing_may_be_locked) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_MEMLOCK, &none);
    std::vector<SecretBytes> secrets;
    for (int i = 0; i < 2000; ++i)
      secrets.emplace_back(std::size_t{64 + i % 8000u});
    std::ranges::fill(secrets.back().mutable_view(), Byte{1});
    _exit(secrets.back().view()[0] == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace nacre
