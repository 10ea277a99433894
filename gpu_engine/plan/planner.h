// SPDX-License-Identifier: Apache-2.0
// Owns the backends and decides which of them runs which messages of a payload.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/engine.h"
#include "gpu_engine/plan/busy_periods.h"
#include "gpu_engine/plan/cost_model.h"
#include "gpu_engine/plan/device_backend.h"
#include "gpu_engine/plan/learned_costs.h"
#include "gpu_engine/plan/trials.h"

namespace nacre::engine {

class CpuBackend;

// The messages of a payload, each with one of the two backends, and the times that are expected
// there.
struct Plan {
  std::vector<std::uint32_t> cpu;
  std::vector<KindGroup> cuda;  // none of them empty
  // All messages are for devices, and nobody has looked at each: the two members above are empty,
  // and the size of the input is not known.
  bool is_unsorted = false;
  std::uint64_t input_bytes = 0;  // of the payload
  // Indexed by Side: what ended() must be told. Nothing for a backend that gets no part.
  std::array<std::optional<PlannedPart>, 2> parts = {};
};

// Nanoseconds since some moment. They never decrease. Thread-safe; throws nothing.
using PlannerClock = std::function<std::uint64_t()>;
std::uint64_t steady_ns();

class Planner {
 public:
  // Makes the backends that the choice allows. unsupported when the choice names one that this
  // build or this machine does not have.
  static Result<Planner> create(const EngineOptions& options, const DeviceMaker& make_devices,
                                PlannerClock clock = steady_ns);
  Planner(Planner&&) noexcept;
  ~Planner();

  // Thread-safe. Throws std::bad_alloc. The choice cuda gives devices everything that they can do.
  // automatic deals messages out so that all end soonest, after everything that has been planned
  // and has not ended() yet (for a device: after a part of that). waits: the calling thread will
  // wait for the payload. If the waiting thread is a backend's own, the device's batches might be
  // its own to run. So all messages then go to the cpu, where the caller takes part. The parts of a
  // plan begin with this call.
  Plan plan(const Payload& payload, bool waits);
  // Thread-safe. Call it once for each backend that a plan uses, as soon as that backend has ended
  // its part. Its time is used to predict later payloads.
  void ended(const Plan& plan, Side side) { ended(plan.parts[index_of(side)], side); }
  void ended(const std::optional<PlannedPart>& part, Side side);
  // Thread-safe. Call it with a payload that has ended. Later records whose codec nobody knows are
  // assumed to have the codec of its last compressed record. Before the first such payload, lz77 is
  // assumed.
  void learn(const Payload& payload);

  Backend& cpu() const;
  DeviceBackend* cuda() const;  // nullptr where there is none
  Result<Arena> allocate(std::size_t size_bytes) const;
  std::uint64_t payload_size_bytes() const;
  Result<double> measure_resident(Payload& payload, unsigned repetitions) const;
  Result<DeviceCeilings> measure_ceilings() const;
  void add_stats(EngineStats& stats) const;
  // "cuda, DEVICES; cpu, N threads". The cpu alone where devices were not chosen. "cpu, N threads;
  // cuda: none (WHY)" where they were chosen and there are none.
  std::string backend_name() const;

 private:
  Planner(EngineChoice choice, std::unique_ptr<CpuBackend> cpu, std::unique_ptr<DeviceBackend> cuda,
          std::optional<CostModel> costs, std::string why_no_cuda, PlannerClock clock);
  // Deals out many similar messages, which go to one backend as a whole; nothing where both should
  // share.
  std::optional<Plan> deal_out_unsorted(const Payload& payload, double load_factor);
  Plan deal_out(const Payload& payload, Sorted sorted, double load_factor);
  std::uint64_t whole_if_sooner(const Work& work, double load_factor, std::uint64_t share,
                                double cpu_before, double cuda_before) const;
  struct Dealt {
    std::uint64_t share;
    bool teaches = true;  // its time is used to learn
  };
  class Disturbance;
  Dealt share_or_trial(const Work& work, double load_factor, std::uint64_t share);
  std::array<double, 2> backlogs() const;  // nanoseconds, by Side
  PlannedPart predict(Side side, const Work& work, double bytes) const;
  Plan begin(Plan plan);

  EngineChoice choice_;
  std::optional<CostModel> costs_;  // of automatic; without them the cpu gets everything
  CudaStats measured_;              // what devices did while the costs were measured
  struct State {
    std::atomic<Codec> record_codec = Codec::lz77;
    LearnedCosts learned;
    Mutex mutex;                                              // held also while costs are learned
    std::array<BusyPeriods, 2> busy NACRE_GUARDED_BY(mutex);  // by Side
    Trials trials NACRE_GUARDED_BY(mutex);
    double load_factor NACRE_GUARDED_BY(mutex) = 1;  // of those backends
  };
  std::unique_ptr<State> state_ = std::make_unique<State>();
  PlannerClock clock_;
  std::unique_ptr<CpuBackend> cpu_;
  std::unique_ptr<DeviceBackend> cuda_;  // destroyed first: it completes on the cpu what fails
  std::string why_no_cuda_;
};

std::unique_ptr<Engine> make_engine(Planner planner);

}  // namespace nacre::engine
