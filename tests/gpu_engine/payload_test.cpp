// SPDX-License-Identifier: Apache-2.0
// Payloads and arenas.
#include "gpu_engine/payload.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

std::size_t wiped_size = 0;
bool was_wiped = false;

void note_release(Byte* data, std::size_t size) {
  wiped_size = size;
  was_wiped = std::all_of(data, data + size, [](Byte b) { return b == 0; });
}

TEST(Arena, is_zeroed_writable_and_movable) {
  for (const std::size_t size : {1u, 4096u, 100000u, 5u << 20}) {
    Arena arena = allocate_host_arena(size).value();
    ASSERT_EQ(arena.size(), size);
    EXPECT_TRUE(std::all_of(arena.data(), arena.data() + size, [](Byte b) { return b == 0; }));
    arena.data()[size - 1] = 7;
    Arena moved = std::move(arena);
    EXPECT_EQ(moved.data()[size - 1], 7);
    EXPECT_EQ(arena.data(), nullptr);  // NOLINT: the moved-from state is part of the contract
    EXPECT_EQ(arena.size(), 0u);
  }
}

TEST(Arena, of_nothing_is_empty_and_of_too_much_is_refused) {
  EXPECT_EQ(allocate_host_arena(0).value().size(), 0u);
  EXPECT_EQ(error_of(allocate_host_arena(std::size_t{1} << 62)), ErrorCode::out_of_memory);
}

TEST(Arena, is_wiped_before_its_memory_goes) {
  Bytes memory(1000, 0xaa);
  { const Arena arena(memory.data(), memory.size(), note_release); }
  EXPECT_EQ(wiped_size, 1000u);
  EXPECT_TRUE(was_wiped);

  // Assigned over: the old contents go at once.
  Bytes other(500, 0xbb);
  Arena arena(other.data(), other.size(), note_release);
  arena = Arena();
  EXPECT_EQ(wiped_size, 500u);
  EXPECT_TRUE(was_wiped);
}

// Whatever pages there are, at whatever place: all of them, and none is made.
TEST(Arena, wipes_the_pages_that_there_are) {
  static constexpr std::size_t page = 4096, count = 4096;
  static Byte* last_data = nullptr;
  static std::size_t last_size = 0;
  Arena pages = allocate_host_arena(count * page + 100).value();
  madvise(pages.data(), pages.size(), MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < count; i += 1 + i % 7 * 40)
    pages.data()[i * page + i % page] = 1;
  pages.data()[count * page + 99] = 1;
  rusage before = {}, after = {};
  ASSERT_EQ(getrusage(RUSAGE_THREAD, &before), 0);
  {
    const Arena arena = Arena::adopt(std::move(pages), [](Byte* data, std::size_t size) {
      last_data = data;
      last_size = size;
    });
  }
  ASSERT_EQ(getrusage(RUSAGE_THREAD, &after), 0);
  EXPECT_LT(after.ru_minflt - before.ru_minflt, 100);
  ASSERT_EQ(last_size, count * page + 100);
  EXPECT_TRUE(std::all_of(last_data, last_data + last_size, [](Byte b) { return b == 0; }));
  munmap(last_data, last_size);
}

TEST(Payload, equal_keys_share_an_index) {
  TestRandom random;
  Payload payload;
  std::vector<Bytes> keys;
  for (int i = 0; i < 100; ++i)
    keys.push_back(random.bytes(32));
  for (std::uint32_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(payload.add_key(CipherSuite::aes_256_gcm, keys[i]), i);
  for (std::uint32_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(payload.add_key(CipherSuite::aes_256_gcm, keys[i]), i);
  EXPECT_EQ(payload.key_table.size(), 100u);
  EXPECT_EQ(payload.keys_used, 3200u);
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    const Payload::Key& entry = payload.key_table[i];
    EXPECT_TRUE(std::ranges::equal(payload.keys.view().subspan(entry.offset, entry.size), keys[i]));
  }
  // The same bytes for another suite, or a part of them, are another key.
  EXPECT_EQ(payload.add_key(CipherSuite{2}, keys[0]), 100u);
  EXPECT_EQ(payload.add_key(CipherSuite::aes_256_gcm, ByteView(keys[0]).first(16)), 101u);
}

TEST(Payload, clear_wipes_the_keys_and_keeps_the_memory) {
  Payload payload;
  payload.messages.resize(10);
  payload.results.resize(10);
  payload.add_key(CipherSuite::aes_256_gcm, Bytes(32, 0xcc));
  const Byte* const memory = payload.keys.view().data();
  payload.clear();
  EXPECT_TRUE(payload.messages.empty() && payload.results.empty() && payload.key_table.empty());
  EXPECT_EQ(payload.keys.view().data(), memory);
  EXPECT_TRUE(std::ranges::all_of(payload.keys.view(), [](Byte b) { return b == 0; }));
  EXPECT_EQ(payload.add_key(CipherSuite::aes_256_gcm, Bytes(32, 0xdd)), 0u);
}

TEST(Payload, whose_messages_leave_its_arenas_ends_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Payload payload;
  payload.input_size = payload.output_size = 100;
  payload.messages = {
      {.input_offset = 10, .input_size = 90, .output_offset = 100, .output_capacity = 0}};
  payload.check_bounds();
  const auto change = [&](std::uint64_t Message::*field, std::uint64_t value) {
    Payload changed = {.input_size = 100, .output_size = 100, .messages = payload.messages};
    changed.messages[0].*field = value;
    changed.check_bounds();
  };
  const auto stops = testing::KilledBySignal(SIGABRT);
  EXPECT_EXIT(change(&Message::input_size, 91), stops,
              "input of 91 bytes at 10 leaves an arena of");
  EXPECT_EXIT(change(&Message::input_offset, ~std::uint64_t{0}), stops, "input of 90 bytes at 18");
  EXPECT_EXIT(change(&Message::output_offset, 101), stops, "output of 0 bytes at 101 leaves");
  EXPECT_EXIT(change(&Message::output_capacity, ~std::uint64_t{0}), stops, "output of 18.* at 100");
}

}  // namespace
}  // namespace nacre::engine
