// SPDX-License-Identifier: Apache-2.0
// A backend that stands in for devices. Each of its threads is a slot, and runs its messages on the
// cpu. So tests see what a planner deals out, also on machines without a device.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gpu_engine/plan/device_backend.h"

namespace nacre::engine {

// The state of the device that tests see and change.
struct DeviceState {
  std::atomic<std::uint64_t> message_count = 0;
  std::atomic<std::uint64_t> submission_count = 0;
  std::atomic<std::uint64_t> unsorted_count = 0;  // the part of them that came unsorted
  std::atomic<double> load_factor = 1;
  std::atomic<bool> has_memory = true;
  std::atomic<std::uint64_t> failed_batch_count = 0;
  std::atomic<std::uint64_t> busy_ns = 0;
  // Called on the device's thread before what it is given runs. Set while nothing does.
  std::function<void()> before_run = {};
};

class FakeDevice final : public DeviceBackend {
 public:
  FakeDevice(std::string name, std::shared_ptr<DeviceState> state, Backend& cpu, unsigned slots)
      : name_(std::move(name)), state_(std::move(state)), cpu_(cpu) {
    for (unsigned i = 0; i < slots; ++i)
      threads_.emplace_back([this] { work(); });
  }
  ~FakeDevice() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }

  std::string name() const override { return name_; }
  void run(Payload& payload, MessageIndexes indexes) override {
    std::latch ended(1);
    submit(payload, {indexes.begin(), indexes.end()}, [&] { ended.count_down(); });
    ended.wait();
  }
  void submit(Payload& payload, std::vector<std::uint32_t> indexes,
              std::function<void()> done) override {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back([this, &payload, mine = std::move(indexes), ended = std::move(done)] {
        if (state_->before_run) state_->before_run();
        cpu_.run(payload, mine);
        state_->message_count += mine.size();
        ended();
      });
    }
    ++state_->submission_count;
    arrived_.notify_one();
  }
  void submit_sorted(Payload& payload, Sorted sorted, std::function<void()> done) override {
    std::vector<std::uint32_t> indexes = std::move(sorted.rest);
    for (const KindGroup& group : sorted.groups) {
      EXPECT_FALSE(group.indexes.empty());
      indexes.insert(indexes.end(), group.indexes.begin(), group.indexes.end());
    }
    submit(payload, std::move(indexes), std::move(done));
  }
  void submit_unsorted(Payload& payload, std::function<void(const MessageCounts&)> done) override {
    std::vector<std::uint32_t> all(payload.messages.size());
    std::iota(all.begin(), all.end(), 0);
    ++state_->unsorted_count;
    submit(payload, std::move(all), [&payload, ended = std::move(done)] {
      MessageCounts counts;
      for (std::size_t i = 0; i < payload.messages.size(); ++i) {
        counts.failed += !payload.results[i].ok;
        counts.input_bytes += payload.messages[i].input_size;
        counts.output_bytes += payload.results[i].output_size;
      }
      ended(counts);
    });
  }
  Result<Arena> allocate(std::size_t size_bytes) override {
    if (!state_->has_memory) return fail(ErrorCode::out_of_memory, "a test's");
    return allocate_host_arena(size_bytes);
  }
  CudaStats stats() const override {
    return {.message_count = state_->message_count,
            .input_bytes = 0,
            .failed_batch_count = state_->failed_batch_count,
            .devices = {{.name = "fake",
                         .number = 3,
                         .is_lost = state_->load_factor == 0,
                         .busy_ns = state_->busy_ns,
                         .input_bytes = 2 * state_->busy_ns}}};
  }
  double load_factor() const override { return state_->load_factor; }
  Result<double> measure_resident(Payload&, unsigned) override {
    return fail(ErrorCode::unsupported, "a test's");
  }
  Result<DeviceCeilings> measure_ceilings() override {
    return fail(ErrorCode::unsupported, "a test's");
  }

 private:
  void work() {
    mark_engine_thread();
    std::unique_lock lock(mutex_);
    for (;;) {
      arrived_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  const std::string name_;
  const std::shared_ptr<DeviceState> state_;
  Backend& cpu_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace nacre::engine
