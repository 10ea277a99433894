// SPDX-License-Identifier: Apache-2.0
// The engine: a planner's backends, and counts of what went through them.
#include "gpu_engine/engine.h"

#include <atomic>
#include <new>

#include "gpu_engine/planner.h"

namespace nacre::engine {
namespace {

class PlannedEngine final : public Engine {
 public:
  explicit PlannedEngine(Planner planner) : planner_(std::move(planner)) {}

  Result<Arena> allocate(std::size_t size_bytes) override {
    return allocate_host_arena(size_bytes);
  }

  void run(Payload& payload) override {
    planner_.choose(payload).run(payload);
    count(payload);
  }

  void submit(Payload& payload, std::function<void()> done) override {
    Backend& backend = planner_.choose(payload);
    std::function<void()> counting;
    try {
      counting = [this, &payload, done] {
        count(payload);
        done();
      };
    } catch (const std::bad_alloc&) {
      run(payload);
      done();
      return;
    }
    backend.submit(payload, std::move(counting));
  }

  EngineStats stats() const override {
    return {.payload_count = payload_count_,
            .message_count = message_count_,
            .failed_message_count = failed_message_count_,
            .input_bytes = input_bytes_,
            .output_bytes = output_bytes_};
  }

  std::string backend_name() const override { return planner_.backend_name(); }

 private:
  void count(const Payload& payload) {
    std::uint64_t failed = 0;
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    for (const Message& message : payload.messages)
      input += message.input_size;
    for (const MessageResult& result : payload.results) {
      failed += !result.ok;
      output += result.output_size;
    }
    payload_count_.fetch_add(1, std::memory_order_relaxed);
    message_count_.fetch_add(payload.messages.size(), std::memory_order_relaxed);
    failed_message_count_.fetch_add(failed, std::memory_order_relaxed);
    input_bytes_.fetch_add(input, std::memory_order_relaxed);
    output_bytes_.fetch_add(output, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> payload_count_ = 0;
  std::atomic<std::uint64_t> message_count_ = 0;
  std::atomic<std::uint64_t> failed_message_count_ = 0;
  std::atomic<std::uint64_t> input_bytes_ = 0;
  std::atomic<std::uint64_t> output_bytes_ = 0;
  // Last, so that it goes first and waits for submitted payloads while the counts still stand.
  Planner planner_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options) {
  NACRE_ASSIGN(Planner planner, Planner::create(options));
  return std::make_unique<PlannedEngine>(std::move(planner));
}

}  // namespace nacre::engine
