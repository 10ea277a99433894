// SPDX-License-Identifier: Apache-2.0
// Owns the backends, and decides which of them runs which messages of a payload.
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

// Which backend runs which messages of a payload, and the times predicted for both.
struct Plan {
  std::vector<std::uint32_t> cpu;
  std::vector<KindGroup> cuda;  // none of them empty
  // All messages go to devices unsorted, see Alike: the two members above are empty, and
  // input_bytes is not known.
  bool is_unsorted = false;
  std::uint64_t input_bytes = 0;  // of the payload
  // By Side: what to pass to ended(). Nothing for a backend without a part.
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

  // Thread-safe. Throws std::bad_alloc. The choice cuda gives devices everything that they can run.
  // automatic deals messages out so that all of them end soonest, after the plans that have not
  // ended() yet (devices work on several payloads at once, so only a quarter of theirs counts).
  // waits: the calling thread will wait for the payload. A backend's own thread must not wait for a
  // device, whose batches it may have to run itself; so all messages then go to the cpu, where the
  // caller takes part. The parts of a plan begin with this call.
  Plan plan(const Payload& payload, bool waits);
  // Thread-safe. Call it once for each backend that a plan uses, as soon as that backend has ended
  // its part. The part's time is used to predict later payloads.
  void ended(const Plan& plan, Side side) { ended(plan.parts[index_of(side)], side); }
  void ended(const std::optional<PlannedPart>& part, Side side);
  // Thread-safe. Call it with a payload that has ended. Later records of unknown codec are assumed
  // to have the codec of this payload's last compressed record; before the first such payload,
  // lz77.
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
  // Gives many similar messages to one backend as a whole; nothing where find_alike() finds none,
  // or where both backends should share.
  std::optional<Plan> deal_out_unsorted(const Payload& payload, double load_factor);
  Plan deal_out(const Payload& payload, Sorted sorted, double load_factor);
  std::uint64_t whole_if_sooner(const Work& work, double load_factor, std::uint64_t share,
                                double cpu_before, double cuda_before) const;
  struct Dealt {
    std::uint64_t share;
    bool teaches = true;  // whether the part's time is used to learn
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
    double load_factor NACRE_GUARDED_BY(mutex) = 1;  // with which the trials were made
  };
  std::unique_ptr<State> state_ = std::make_unique<State>();
  PlannerClock clock_;
  std::unique_ptr<CpuBackend> cpu_;
  std::unique_ptr<DeviceBackend> cuda_;  // destroyed first: it completes on the cpu what fails
  std::string why_no_cuda_;
};

std::unique_ptr<Engine> make_engine(Planner planner);

}  // namespace nacre::engine
