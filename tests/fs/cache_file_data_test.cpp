// SPDX-License-Identifier: Apache-2.0
// FileData with everything under it, against plain arrays of bytes.
#include <algorithm>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "fs/cache/file_data.h"
#include "fs/cache/flush.h"
#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

using fs::SeekWhat;

Bytes random_bytes_of(std::mt19937& random, std::size_t size) {
  Bytes bytes(size);
  // Half of them compressible.
  const bool plain = random() % 2 == 0;
  for (Byte& byte : bytes)
    byte = static_cast<Byte>(plain ? 'a' + random() % 3 : random());
  return bytes;
}

// One random change of a file and of the array that it must equal.
void change(std::mt19937& random, fs::FileData& file, Bytes& model, std::size_t size_max) {
  const std::size_t offset = random() % size_max;
  const std::size_t length = 1 + random() % (random() % 4 == 0 ? size_max / 3 : 5000);
  switch (random() % 8) {
    case 0: {
      const std::size_t size = random() % size_max;
      NACRE_ASSERT_OK(file.resize(size));
      model.resize(size, 0);
      break;
    }
    case 1: {
      NACRE_ASSERT_OK(file.punch(offset, length));
      const std::size_t end = std::min(model.size(), offset + length);
      if (offset < end) {
        std::fill(model.begin() + static_cast<std::ptrdiff_t>(offset),
                  model.begin() + static_cast<std::ptrdiff_t>(end), Byte{0});
      }
      break;
    }
    default: {
      std::size_t at = random() % 3 == 0 ? model.size() : offset;
      if (random() % 8 == 0) at -= at % (16u << 10);
      if (at + length > size_max) break;
      const Bytes bytes = random_bytes_of(random, length);
      NACRE_ASSERT_OK(file.write(at, bytes));
      if (model.size() < at + length) model.resize(at + length, 0);
      std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

void expect_content(fs::FileData& file, const Bytes& model, std::mt19937& random) {
  ASSERT_EQ(file.size(), model.size());
  Bytes out(model.size() + 10, 0xEE);
  const auto count = file.read(0, out);
  NACRE_ASSERT_OK(count);
  ASSERT_EQ(*count, model.size());
  const auto differs = std::mismatch(model.begin(), model.end(), out.begin());
  ASSERT_TRUE(differs.first == model.end()) << "byte " << differs.first - model.begin();
  if (model.empty()) return;
  const std::size_t at = random() % model.size();
  Bytes part(1 + random() % 3000);
  const auto part_count = file.read(at, part);
  NACRE_ASSERT_OK(part_count);
  ASSERT_EQ(*part_count, std::min(part.size(), model.size() - at));
  ASSERT_TRUE(std::equal(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(*part_count),
                         model.begin() + static_cast<std::ptrdiff_t>(at)));
}

// Bytes in a hole must be zeros, and bytes that are not zeros must lie in data.
void expect_seek(fs::FileData& file, const Bytes& model) {
  std::uint64_t at = 0;
  while (at < model.size()) {
    const auto data = file.seek(at, SeekWhat::data);
    const std::uint64_t begin = data ? *data : model.size();
    if (!data) {
      ASSERT_EQ(data.error().code, ErrorCode::no_position);
    }
    ASSERT_TRUE(std::all_of(model.begin() + static_cast<std::ptrdiff_t>(at),
                            model.begin() + static_cast<std::ptrdiff_t>(begin),
                            [](Byte byte) { return byte == 0; }));
    if (!data) return;
    const auto hole = file.seek(begin, SeekWhat::hole);
    NACRE_ASSERT_OK(hole);
    ASSERT_GT(*hole, begin);
    ASSERT_LE(*hole, model.size());
    at = *hole;
  }
}

// Chunks of 64 KiB that do not compress are stored in parts.
StoreOptions options_with_parts() {
  StoreOptions options;
  options.segments.chunk_size_bytes = 64u << 10;
  options.cache.cache_budget_bytes = 512u << 10;
  return options;
}

void expect_array_under_random_changes(const StoreOptions& options, std::size_t size_max) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  auto store = TestStore::open(backing, options);
  NACRE_ASSERT_OK(store);
  std::map<std::uint64_t, Bytes> models;
  for (int step = 0; step < 1500; ++step) {
    const std::uint64_t number = 2 + random() % 3;
    ASSERT_NO_FATAL_FAILURE(change(random, (*store)->file(number), models[number], size_max));
    if (random() % 8 == 0) {
      NACRE_ASSERT_OK(random() % 4 == 0 ? (*store)->sync_all() : (*store)->sync(number));
    }
    if (random() % 16 == 0) {
      for (auto& [file, model] : models) {
        ASSERT_NO_FATAL_FAILURE(expect_content((*store)->file(file), model, random));
        ASSERT_NO_FATAL_FAILURE(expect_seek((*store)->file(file), model));
      }
    }
    if (random() % 64 == 0) {
      ASSERT_NO_FATAL_FAILURE((*store)->check_map());
    }
    if (random() % 200 == 0) {
      NACRE_ASSERT_OK((*store)->close());
      store->reset();
      store = TestStore::open(backing, options);
      NACRE_ASSERT_OK(store);
      (*store)->check_map();
    }
  }
  for (auto& [file, model] : models) {
    ASSERT_NO_FATAL_FAILURE(expect_content((*store)->file(file), model, random));
  }
}

TEST(FileData, equals_an_array_under_random_changes_flushes_and_reopening) {
  expect_array_under_random_changes({}, 200'000);
}

TEST(FileData, equals_an_array_where_chunks_are_stored_in_parts) {
  expect_array_under_random_changes(options_with_parts(), 600'000);
}

void expect_synced_through_power_loss(const StoreOptions& options, std::size_t size_max) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    auto backing = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(backing));
    // Versions of each file that the volume may show: the last synced one, or, for a file that was
    // not synced since, any later state. So every file is synced before it changes again.
    Bytes synced, model;
    const std::uint64_t number = 2;
    {
      auto store = TestStore::open(backing, options);
      NACRE_ASSERT_OK(store);
      const int syncs = 1 + static_cast<int>(random() % 6);
      for (int i = 0; i < syncs; ++i) {
        for (int j = 0; j < 4; ++j) {
          ASSERT_NO_FATAL_FAILURE(change(random, (*store)->file(number), model, size_max));
        }
        NACRE_ASSERT_OK((*store)->sync(number));
        synced = model;
      }
      (*store)->committer().abandon();
    }
    auto after = backing->power_loss(random());
    auto store = TestStore::open(after, options);
    NACRE_ASSERT_OK(store);
    ASSERT_NO_FATAL_FAILURE(expect_content((*store)->file(number), synced, random));
    (*store)->check_map();
  }
}

TEST(FileData, keeps_what_was_synced_through_power_loss) {
  expect_synced_through_power_loss({}, 100'000);
}

TEST(FileData, keeps_what_was_synced_in_parts_through_power_loss) {
  expect_synced_through_power_loss(options_with_parts(), 300'000);
}

TEST(FileData, keeps_what_was_synced_when_power_fails_at_any_operation) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  // The same workload each time, stopped at each backing operation in turn.
  const auto run = [&](const std::shared_ptr<MemoryBacking>& backing, Bytes& synced,
                       Bytes& pending) {
    std::mt19937 random(seed);
    auto store = TestStore::open(backing);
    if (!store) return;
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 3; ++j)
        change(random, (*store)->file(2), pending, 60'000);
      if (!(*store)->sync(2)) return;
      synced = pending;
    }
  };
  auto formatted = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(formatted));
  std::uint64_t count = 0;
  {
    auto backing = formatted->process_kill();
    Bytes synced, pending;
    run(backing, synced, pending);
    count = backing->change_count();
  }
  ASSERT_GT(count, 10u);
  for (std::uint64_t stop = 0; stop < count; ++stop) {
    SCOPED_TRACE(testing::Message() << "stopped at " << stop << " of " << count);
    auto backing = formatted->process_kill();
    backing->fail_at(stop);
    Bytes synced, pending;
    run(backing, synced, pending);
    std::mt19937 random(seed + static_cast<unsigned>(stop));
    auto store = TestStore::open(backing->power_loss(random()));
    NACRE_ASSERT_OK(store);
    (*store)->check_map();
    // The commit under way may have become durable just before the failure.
    const Bytes& expected = (*store)->file(2).size() == pending.size() ? pending : synced;
    Bytes out(expected.size());
    NACRE_ASSERT_OK((*store)->file(2).read(0, out));
    if (out != pending) {
      ASSERT_NO_FATAL_FAILURE(expect_content((*store)->file(2), synced, random));
    }
  }
}

// Bytes that tell where they lie, none of them zero.
Bytes numbered_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<Byte>(1 + (i / 1024 + i) % 255);
  return bytes;
}

TEST(FileData, a_flush_that_fails_leaves_no_gap_for_the_next) {
  auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  StoreOptions options;
  options.inline_commit_bytes_max = 0;
  options.cache.flush_size_bytes_max = 64u << 10;
  auto store = TestStore::open(backing, options);
  NACRE_ASSERT_OK(store);
  const Bytes content = numbered_bytes(200'000);
  NACRE_ASSERT_OK((*store)->file(2).write(0, content));
  // The first 64 KiB find no room. The following bytes would find some.
  backing->inject({.operations = change_write,
                   .path_part = "segments",
                   .skip = 1,  // the header of the segment
                   .count = 1,
                   .code = ErrorCode::no_space});
  const auto synced = (*store)->sync(2);
  ASSERT_FALSE(synced) << "what was not written was called durable";
  EXPECT_EQ(synced.error().code, ErrorCode::no_space);
  (*store)->check_map();
  NACRE_ASSERT_OK((*store)->sync(2));
  (*store)->check_map();
  std::mt19937 random(1);
  ASSERT_NO_FATAL_FAILURE(expect_content((*store)->file(2), content, random));
  (*store)->committer().abandon();
  auto after = TestStore::open(backing->power_loss(0));
  NACRE_ASSERT_OK(after);
  (*after)->check_map();
  ASSERT_NO_FATAL_FAILURE(expect_content((*after)->file(2), content, random));
}

TEST(FileData, truncation_between_two_flushes_of_a_commit_leaves_no_gap) {
  auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  StoreOptions options;
  options.cache.flush_size_bytes_max = 64u << 10;
  auto store = TestStore::open(backing, options);
  NACRE_ASSERT_OK(store);
  const std::shared_ptr<fs::FileData> file = (*store)->shared_file(2);
  const Bytes content = numbered_bytes(200'000);
  NACRE_ASSERT_OK(file->write(0, content));
  constexpr std::uint64_t last = 1000;
  std::uint64_t next = 0;
  {
    fs::Flush flush((*store)->cache(), fs::FlushMode::everything);
    next = flush.add(file, 0, last);
    NACRE_ASSERT_OK(flush.run());
  }
  ASSERT_GT(next, 1u);
  NACRE_ASSERT_OK(file->resize(0));
  NACRE_ASSERT_OK(file->write(0, content));
  while (next <= last) {
    fs::Flush flush((*store)->cache(), fs::FlushMode::everything);
    next = flush.add(file, next, last);
    NACRE_ASSERT_OK(flush.run());
  }
  (*store)->check_map();
  std::mt19937 random(1);
  ASSERT_NO_FATAL_FAILURE(expect_content(*file, content, random));
  NACRE_ASSERT_OK((*store)->sync(2));
  (*store)->check_map();
  ASSERT_NO_FATAL_FAILURE(expect_content(*file, content, random));
}

TEST(FileData, stays_right_with_writers_readers_and_flushes_at_once) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  StoreOptions options;
  options.threads = true;
  options.commit_interval_ms = 20;
  options.cache.dirty_budget_bytes = 256 << 10;
  options.cache.cache_budget_bytes = 256 << 10;
  auto store = TestStore::open(backing, options);
  NACRE_ASSERT_OK(store);
  std::vector<std::thread> threads;
  for (unsigned writer = 0; writer < 3; ++writer) {
    threads.emplace_back([&, writer] {
      std::mt19937 random(seed + writer);
      Bytes model;
      fs::FileData& file = (*store)->file(10 + writer);
      for (int step = 0; step < 400; ++step) {
        change(random, file, model, 300'000);
        if (step % 20 == 0) NACRE_EXPECT_OK((*store)->sync(10 + writer));
        if (step % 5 == 0) expect_content(file, model, random);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  NACRE_ASSERT_OK((*store)->sync_all());
  EXPECT_EQ((*store)->cache().stats().dirty_bytes, 0u);
  (*store)->check_map();
  NACRE_ASSERT_OK((*store)->close());
}

}  // namespace
}  // namespace nacre::tests
