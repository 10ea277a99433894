// SPDX-License-Identifier: Apache-2.0
// A thread that waits for a file's flush mutex gets it, however often other threads take it.
#include "fs/cache/fair_mutex.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace nacre::tests {
namespace {

// With a std::mutex the waiting thread is passed over for thousands of turns.
TEST(FairMutex, goes_to_whoever_waits_before_it_goes_to_those_who_come_later) {
  constexpr int eager_count = 4;
  fs::FairMutex mutex;
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> turn_count{0};
  std::vector<std::thread> eager;
  for (int i = 0; i < eager_count; ++i) {
    eager.emplace_back([&] {
      while (!ends) {
        const std::lock_guard lock(mutex);
        ++turn_count;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  }
  while (turn_count < 2 * eager_count)
    std::this_thread::yield();
  // Before this thread come those that waited when it asked, and at most as many more. Now and then
  // this thread may lose its processor before it asks, so half of the rounds suffice.
  int prompt_count = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = turn_count;
    const std::lock_guard lock(mutex);
    prompt_count += turn_count - before <= 2u * eager_count;
  }
  EXPECT_GE(prompt_count, 10);
  ends = true;
  for (std::thread& thread : eager)
    thread.join();
}

TEST(FairMutex, is_one_threads_at_a_time) {
  constexpr int thread_count = 4;
  constexpr int rounds = 20'000;
  fs::FairMutex mutex;
  int locked = 0;
  int tried = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const std::lock_guard lock(mutex);
        ++locked;
      }
      for (int round = 0; round < rounds;) {
        const std::unique_lock lock(mutex, std::try_to_lock);
        if (!lock) continue;
        ++tried;
        ++round;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(locked, thread_count * rounds);
  EXPECT_EQ(tried, thread_count * rounds);
}

TEST(FairMutex, is_not_tried_in_vain_where_it_is_free_alone) {
  fs::FairMutex mutex;
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace nacre::tests
