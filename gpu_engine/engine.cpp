// SPDX-License-Identifier: Apache-2.0
// The engine: deals the messages of a payload out to the planner's backends, waits for all of them,
// and counts what went through.
#include "gpu_engine/engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <latch>
#include <memory>
#include <new>
#include <optional>

#include "gpu_engine/base/check.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/cuda/cuda_backend.h"
#include "gpu_engine/forget_keys.h"
#include "gpu_engine/plan/planner.h"

namespace nacre::engine {
namespace {

class PlannedEngine final : public Engine {
 public:
  explicit PlannedEngine(Planner planner) : planner_(std::move(planner)) {}

  // done() may submit again, to a backend that must still exist.
  ~PlannedEngine() override {
    UniqueLock lock(mutex_);
    all_ended_.wait(lock, [&]() NACRE_REQUIRES(mutex_) { return submitted_count_ == 0; });
  }

  Result<Arena> allocate(std::size_t size_bytes) override { return planner_.allocate(size_bytes); }

  std::uint64_t payload_size_bytes() const override { return planner_.payload_size_bytes(); }

  void run(Payload& payload) override {
    auto plan = prepare(payload, true);
    if (!plan) return count(payload, input_bytes_of(payload));
    if (plan->is_unsorted) {
      const MessageCounts counts = planner_.cuda()->run_unsorted(payload);
      planner_.ended(*plan, Side::cuda);
      count(payload, counts);
      return;
    }
    if (plan->cuda.empty()) {
      planner_.cpu().run(payload, plan->cpu);
      planner_.ended(*plan, Side::cpu);
    } else if (plan->cpu.empty()) {
      planner_.cuda()->run_sorted(payload, {.groups = std::move(plan->cuda), .rest = {}});
      planner_.ended(*plan, Side::cuda);
    } else {
      std::latch cuda_ended(1);
      auto on_cuda_ended = [&] {
        planner_.ended(*plan, Side::cuda);
        cuda_ended.count_down();
      };
      // By reference: a copy could fail for want of memory, and the plan has already begun.
      planner_.cuda()->submit_sorted(payload, {.groups = std::move(plan->cuda), .rest = {}},
                                     std::ref(on_cuda_ended));
      planner_.cpu().run(payload, plan->cpu);
      planner_.ended(*plan, Side::cpu);
      cuda_ended.wait();
    }
    count(payload, plan->input_bytes);
  }

  void submit(Payload& payload, std::function<void()> done) override {
    auto plan = prepare(payload, false);
    if (!plan) {
      count(payload, input_bytes_of(payload));
      done();
      return;
    }
    if (plan->is_unsorted) return submit_unsorted(payload, *plan, std::move(done));
    const bool on_cuda = !plan->cuda.empty();
    const bool on_cpu = !plan->cpu.empty() || !on_cuda;
    std::array<std::function<void()>, 2> part_ended;  // by Side
    {
      const LockGuard lock(mutex_);
      ++submitted_count_;
    }
    try {
      const auto left = std::make_shared<std::atomic<int>>(on_cuda && on_cpu ? 2 : 1);
      for (const Side side : {Side::cpu, Side::cuda}) {
        part_ended[index_of(side)] = [this, &payload, done, left, side,
                                      part = plan->parts[index_of(side)],
                                      input_bytes = plan->input_bytes] {
          planner_.ended(part, side);
          if (left->fetch_sub(1, std::memory_order_acq_rel) > 1) return;
          count(payload, input_bytes);
          end_submitted(done);
        };
      }
    } catch (const std::bad_alloc&) {
      for (const Side side : {Side::cpu, Side::cuda})
        planner_.ended(*plan, side);
      run(payload);
      end_submitted(done);
      return;
    }
    // If the cpu has no share, the payload may be destroyed by the time this call returns.
    if (on_cuda)
      planner_.cuda()->submit_sorted(payload, {.groups = std::move(plan->cuda), .rest = {}},
                                     std::move(part_ended[index_of(Side::cuda)]));
    if (on_cpu)
      planner_.cpu().submit(payload, std::move(plan->cpu),
                            std::move(part_ended[index_of(Side::cpu)]));
  }

  Result<double> measure_resident(Payload& payload, unsigned repetitions) override {
    return planner_.measure_resident(payload, repetitions);
  }

  Result<DeviceCeilings> measure_ceilings() override { return planner_.measure_ceilings(); }

  EngineStats stats() const override {
    EngineStats stats = {.payload_count = payload_count_,
                         .message_count = message_count_,
                         .failed_message_count = failed_message_count_,
                         .input_bytes = input_bytes_,
                         .output_bytes = output_bytes_};
    for (std::size_t i = 0; i < payloads_by_size_.size(); ++i)
      stats.payloads_by_size[i] = payloads_by_size_[i].load(std::memory_order_relaxed);
    planner_.add_stats(stats);
    return stats;
  }

  std::string backend_name() const override { return planner_.backend_name(); }

  void forget_keys() {
    planner_.cpu().forget_keys();
    if (Backend* const devices = planner_.cuda()) devices->forget_keys();
  }

 private:
  void submit_unsorted(Payload& payload, const Plan& plan, std::function<void()> done) {
    std::function<void(const MessageCounts&)> ended;
    try {
      ended = [this, &payload, done,
               part = plan.parts[index_of(Side::cuda)]](const MessageCounts& counts) {
        planner_.ended(part, Side::cuda);
        count(payload, counts);
        end_submitted(done);
      };
    } catch (const std::bad_alloc&) {
      planner_.ended(plan, Side::cuda);
      run(payload);
      done();
      return;
    }
    {
      const LockGuard lock(mutex_);
      ++submitted_count_;
    }
    planner_.cuda()->submit_unsorted(payload, std::move(ended));
  }

  void end_submitted(const std::function<void()>& done) {
    // done() is the caller's code. If it throws, against its contract, the payload has ended all
    // the same.
    try {
      done();
    } catch (...) {
    }
    const LockGuard lock(mutex_);
    NACRE_CHECK(submitted_count_ > 0, "a payload ended twice");
    if (--submitted_count_ == 0) all_ended_.notify_all();
  }

  // Nothing when there is no memory for the results or the plan: see Engine::run(). The results are
  // not cleared here: backends write the result of every message they get, on many threads.
  std::optional<Plan> prepare(Payload& payload, bool waits) {
    try {
      payload.results.resize(payload.messages.size());
      Plan plan = planner_.plan(payload, waits);
      if (plan.is_unsorted) return plan;
      std::size_t planned_count = plan.cpu.size();
      for (const KindGroup& group : plan.cuda)
        planned_count += group.indexes.size();
      // If a plan ever leaves a message out, that message must not keep an older result.
      if (planned_count != payload.messages.size())
        std::ranges::fill(payload.results, MessageResult{});
      return plan;
    } catch (const std::exception&) {
      if (payload.results.size() != payload.messages.size()) payload.results.clear();
      std::ranges::fill(payload.results,
                        MessageResult{.error = ErrorCode::out_of_memory,
                                      .detail = "no memory to plan the engine's work"});
      return std::nullopt;
    }
  }

  static std::uint64_t input_bytes_of(const Payload& payload) {
    std::uint64_t sum = 0;
    for (const Message& message : payload.messages)
      sum += message.input_size;
    return sum;
  }

  // input_bytes: the sum over all messages. The caller passes it, since thousands of messages may
  // no longer be in any cache.
  void count(const Payload& payload, std::uint64_t input_bytes) {
    MessageCounts counts = {.input_bytes = input_bytes};
    for (const MessageResult& result : payload.results) {
      counts.failed += !result.ok;
      counts.output_bytes += result.output_size;
    }
    count(payload, counts);
  }

  void count(const Payload& payload, const MessageCounts& counts) {
    planner_.learn(payload);
    payload_count_.fetch_add(1, std::memory_order_relaxed);
    message_count_.fetch_add(payload.messages.size(), std::memory_order_relaxed);
    failed_message_count_.fetch_add(counts.failed, std::memory_order_relaxed);
    input_bytes_.fetch_add(counts.input_bytes, std::memory_order_relaxed);
    output_bytes_.fetch_add(counts.output_bytes, std::memory_order_relaxed);
    const auto size_class = std::min(static_cast<std::size_t>(std::bit_width(counts.input_bytes)),
                                     EngineStats::size_class_count - 1);
    payloads_by_size_[size_class].fetch_add(1, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> payload_count_ = 0;
  std::atomic<std::uint64_t> message_count_ = 0;
  std::atomic<std::uint64_t> failed_message_count_ = 0;
  std::atomic<std::uint64_t> input_bytes_ = 0;
  std::atomic<std::uint64_t> output_bytes_ = 0;
  std::array<std::atomic<std::uint64_t>, EngineStats::size_class_count> payloads_by_size_ = {};
  Mutex mutex_;
  ConditionVariable all_ended_;
  std::uint64_t submitted_count_ NACRE_GUARDED_BY(mutex_) = 0;
  // The last member, so that it is destroyed first: its threads use the members above.
  Planner planner_;
};

}  // namespace

std::unique_ptr<Engine> make_engine(Planner planner) {
  return std::make_unique<PlannedEngine>(std::move(planner));
}

// Another implementation of Engine, such as a test's, keeps no keys that we know of.
void forget_keys(Engine& engine) {
  if (auto* planned = dynamic_cast<PlannedEngine*>(&engine)) planned->forget_keys();
}

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options) {
  NACRE_ASSIGN(Planner planner, Planner::create(options, CudaBackend::create));
  return make_engine(std::move(planner));
}

}  // namespace nacre::engine
