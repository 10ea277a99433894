// SPDX-License-Identifier: Apache-2.0
// Flushes on a disk that is full: one at a time once the reserve is given up, and writers get the
// error until one flush has succeeded.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "fs/cache/flush.h"
#include "fs/store/ballast.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/noise.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

using fs::Ballast;

constexpr std::uint64_t last_chunk = 1u << 20;
constexpr auto chance = std::chrono::milliseconds(300);

Bytes noise_bytes(std::size_t size, std::uint64_t seed) {
  const std::string text = noise(size, seed);
  return Bytes(text.begin(), text.end());
}

// The disk has room for one of several flushes. An earlier version told all of them that there was
// room.
TEST(CacheFullDisk, flushes_without_a_reserve_do_not_take_each_others_room) {
  constexpr std::uint64_t disk_size = 48u << 20;
  constexpr std::uint64_t each = 2u << 20;
  constexpr unsigned flush_count = 4;
  const std::uint64_t rows_need = Ballast::size_for(disk_size) / 2;
  const auto backing = MemoryBacking::create();
  backing->set_capacity(disk_size);
  NACRE_ASSERT_OK(TestStore::format(backing));
  Ballast ballast(backing, 0);  // given up
  StoreOptions options;
  options.segments.fresh_lane_count = flush_count;
  options.cache.ballast = &ballast;
  auto opened = TestStore::open(backing, options);
  NACRE_ASSERT_OK(opened);
  TestStore& store = **opened;
  for (unsigned i = 0; i < flush_count; ++i)
    NACRE_ASSERT_OK(store.file(i + 1).write(0, noise_bytes(each, i)));
  const std::uint64_t room = rows_need + each + each / 2;
  backing->store("foreign", Bytes(backing->space()->free_bytes - room));
  // The first flush that writes gives the others time to be admitted, too.
  std::once_flag once;
  backing->watch([&](std::uint32_t operation, std::string_view path) {
    if (operation == change_write && path.starts_with("segments/"))
      std::call_once(once, [] { std::this_thread::sleep_for(chance); });
  });
  std::atomic<unsigned> written{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < flush_count; ++i) {
    threads.emplace_back([&, i] {
      fs::Flush flush(store.cache(), fs::FlushMode::everything);
      flush.add(store.shared_file(i + 1), 0, last_chunk);
      const auto outcome = flush.run();
      if (outcome) {
        ++written;
      } else {
        EXPECT_EQ(outcome.error().code, ErrorCode::no_space) << outcome.error().message;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(written, 1u);
  EXPECT_GE(backing->space()->free_bytes, rows_need);
  backing->watch({});
  backing->erase("foreign");
  NACRE_EXPECT_OK(store.sync_all());
  for (unsigned i = 0; i < flush_count; ++i) {
    Bytes bytes(each);
    NACRE_EXPECT_OK(store.file(i + 1).read(0, bytes));
    EXPECT_TRUE(bytes == noise_bytes(each, i)) << i;
  }
  NACRE_EXPECT_OK(store.close());
}

// A flush that may use the reserve waits for its turn, and is not refused.
TEST(CacheFullDisk, files_that_moved_are_written_with_what_is_left) {
  constexpr std::uint64_t disk_size = 48u << 20;
  const auto backing = MemoryBacking::create();
  backing->set_capacity(disk_size);
  NACRE_ASSERT_OK(TestStore::format(backing));
  Ballast ballast(backing, 0);
  StoreOptions options;
  options.cache.ballast = &ballast;
  auto opened = TestStore::open(backing, options);
  NACRE_ASSERT_OK(opened);
  TestStore& store = **opened;
  NACRE_ASSERT_OK(store.file(1).write(0, noise_bytes(500'000, 1)));
  backing->store("foreign", Bytes(backing->space()->free_bytes - 1'000'000));
  const auto flush = [&](bool may_use_reserve) {
    fs::Flush one(store.cache(), fs::FlushMode::everything, may_use_reserve);
    one.add(store.shared_file(1), 0, last_chunk);
    return one.run();
  };
  const auto refused = flush(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::no_space);
  NACRE_EXPECT_OK(flush(true));
  backing->erase("foreign");
  NACRE_EXPECT_OK(store.close());
}

class PressureTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t budget = 1u << 20;
  static constexpr std::size_t write_size = 64u << 10;

  void SetUp() override {
    NACRE_ASSERT_OK(TestStore::format(backing_));
    StoreOptions options{.threads = true};
    options.cache.dirty_budget_bytes = budget;
    auto opened = TestStore::open(backing_, options);
    NACRE_ASSERT_OK(opened);
    store_ = std::move(*opened);
    backing_->watch([this](std::uint32_t operation, std::string_view path) {
      if ((operation & (change_write | change_create)) == 0 || !path.starts_with("segments/"))
        return;
      if (has_empty_flushes_) store_->cache().want_streaming(store_->shared_file(2));
      if (++writes_ >= hold_from_) held_.wait();
    });
  }
  void TearDown() override {
    if (!is_open_) disk_.set_value();
    hold_from_ = ~0ull;
    backing_->clear_failures();
    if (store_) NACRE_EXPECT_OK(store_->close());
  }
  void fill_the_disk() {
    backing_->inject({.operations = change_write | change_create,
                      .path_part = "segments",
                      .code = ErrorCode::no_space});
  }
  // From the count-th write from now on, the disk does not answer until let_go().
  void hold(std::uint64_t count) { hold_from_ = writes_ + count; }
  void let_go() {
    is_open_ = true;
    disk_.set_value();
  }
  static bool comes(const std::function<bool()>& what) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!what() && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    return what();
  }
  std::future<Result<>> write(std::uint64_t file, std::size_t at) {
    return std::async(std::launch::async, [this, file, at] {
      return store_->file(file).write(at * write_size, Bytes(write_size, 'x'));
    });
  }
  // Writes to file 1 until a write is refused. The budget bounds how many writes that takes.
  void write_until_told() {
    for (std::size_t at = 0;; ++at) {
      ASSERT_LT(at, 100u);
      const auto written = write(1, at).get();
      if (written) continue;
      EXPECT_EQ(written.error().code, ErrorCode::no_space) << written.error().message;
      return;
    }
  }

  std::shared_ptr<MemoryBacking> backing_ = MemoryBacking::create();
  std::unique_ptr<TestStore> store_;
  std::atomic<std::uint64_t> writes_{0};
  std::atomic<bool> has_empty_flushes_{false};
  std::atomic<std::uint64_t> hold_from_{~0ull};
  std::promise<void> disk_;
  std::shared_future<void> held_ = disk_.get_future().share();
  bool is_open_ = false;
};

// A flush of nothing succeeds on any disk, so it is no sign of room.
TEST_F(PressureTest, writers_hear_of_a_full_disk_until_a_flush_has_written) {
  fill_the_disk();
  ASSERT_NO_FATAL_FAILURE(write_until_told());
  // Each attempt is followed by a flush of file 2, which has nothing; and then by the next attempt.
  has_empty_flushes_ = true;
  hold(4);
  ASSERT_TRUE(comes([&] { return writes_ >= hold_from_; }));
  auto told = write(1, 1000);
  EXPECT_EQ(told.wait_for(patience), std::future_status::ready) << "waits for an attempt to end";
  backing_->clear_failures();
  let_go();
  const auto outcome = told.get();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::no_space);
  ASSERT_TRUE(comes([&] { return store_->cache().dirty_bytes() <= budget / 2; }));
  NACRE_EXPECT_OK(write(1, 1000).get());
  NACRE_EXPECT_OK(store_->sync_all());
}

// When the file is destroyed, its dirty bytes are subtracted from the count of a cache that is
// being destroyed. An earlier version used a member that was destroyed already.
TEST_F(PressureTest, what_could_not_be_written_goes_with_the_cache) {
  fill_the_disk();
  ASSERT_NO_FATAL_FAILURE(write_until_told());
  EXPECT_GT(store_->cache().dirty_bytes(), 0u);
  store_.reset();
}

// The log gets one message, although other files are written between the attempts.
TEST_F(PressureTest, is_said_once_while_others_write) {
  class Counter final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::atomic<unsigned> count{0};

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      const std::string_view text(message.payload.data(), message.payload.size());
      count += text.starts_with("writing back: ");
    }
    void flush_() override {}
  };
  const auto counter = std::make_shared<Counter>();
  auto& sinks = spdlog::default_logger()->sinks();
  sinks.push_back(counter);
  fill_the_disk();
  ASSERT_NO_FATAL_FAILURE(write_until_told());
  for (int attempt = 0; attempt < 3; ++attempt) {
    store_->cache().note_written();
    const std::uint64_t before = writes_;
    ASSERT_TRUE(comes([&] { return writes_ >= before + 2; }));  // the one before has failed
  }
  sinks.pop_back();
  EXPECT_EQ(counter->count, 1u);
}

TEST_F(PressureTest, nobody_hears_of_what_was_deleted_meanwhile) {
  fill_the_disk();
  ASSERT_NO_FATAL_FAILURE(write_until_told());
  store_->file(1).discard();
  EXPECT_EQ(store_->cache().dirty_bytes(), 0u);
  backing_->clear_failures();
  hold(1);
  // More than the budget: the last one waits for the disk.
  std::vector<std::future<Result<>>> writes;
  for (std::size_t at = 0; at < budget / write_size + 2; ++at)
    writes.push_back(write(2, at));
  ASSERT_TRUE(comes([&] { return writes_ >= hold_from_; }));
  std::this_thread::sleep_for(chance);
  let_go();
  for (auto& written : writes)
    NACRE_EXPECT_OK(written.get());
  NACRE_EXPECT_OK(store_->sync_all());
}

}  // namespace
}  // namespace nacre::tests
