// SPDX-License-Identifier: Apache-2.0
// Owns the backends and says which of them runs which messages of a payload.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/engine.h"
#include "gpu_engine/plan/busy_periods.h"
#include "gpu_engine/plan/cost_model.h"
#include "gpu_engine/plan/device_backend.h"
#include "gpu_engine/plan/learned_costs.h"
#include "gpu_engine/plan/trials.h"

namespace nacre::engine {

class CpuBackend;

// The messages of a payload, each in one of the two, and what they are expected to take there.
struct Plan {
  std::vector<std::uint32_t> cpu;
  std::vector<KindGroup> cuda;  // none of them empty
  // All are for devices, and nobody has looked at each: the two above are empty, and nothing is
  // known of the input.
  bool is_unsorted = false;
  std::uint64_t input_bytes = 0;  // of the payload
  // By Side: what ended() is to be told of. Nothing where there is nothing to deal out.
  std::array<std::optional<PlannedPart>, 2> parts = {};
};

// Nanoseconds since some moment, never less than before. Thread-safe; throws nothing.
using PlannerClock = std::function<std::uint64_t()>;
std::uint64_t steady_ns();

class Planner {
 public:
  // Makes the backends that the choice allows. unsupported when it names one that this build or
  // this machine does not have.
  static Result<Planner> create(const EngineOptions& options, const DeviceMaker& make_devices,
                                PlannerClock clock = steady_ns);
  Planner(Planner&&) noexcept;
  ~Planner();

  // Thread-safe. Throws std::bad_alloc. The choice cuda gives devices all that they can do;
  // automatic deals messages out so that all end soonest, behind what has been planned and has not
  // ended() yet (for a device: behind a part of it). waits: the calling thread will wait for the
  // payload. Where that is a backend's own, a device's batches might be its own to run: then all
  // messages are the cpu's, in which the caller takes part. The parts of a plan begin with it.
  Plan plan(const Payload& payload, bool waits);
  // Thread-safe. To be told once of each backend that a plan uses, as soon as that is done with its
  // part; what it took is learned for the payloads to come.
  void ended(const Plan& plan, Side side) { ended(plan.parts[index_of(side)], side); }
  void ended(const std::optional<PlannedPart>& part, Side side);
  // Thread-safe. Of a payload that has ended: as its last compressed record was sealed, so are
  // probably those to come of which nobody knows. Before there was one, lz77.
  void learn(const Payload& payload);

  Backend& cpu() const;
  DeviceBackend* cuda() const;  // nullptr where there is none
  Result<Arena> allocate(std::size_t size_bytes) const;
  std::uint64_t payload_size_bytes() const;
  Result<double> measure_resident(Payload& payload, unsigned repetitions) const;
  Result<DeviceCeilings> measure_ceilings() const;
  void add_stats(EngineStats& stats) const;
  // "cuda, DEVICES; cpu, N threads"; where there was no choice to have devices, the cpu alone;
  // where there was and there are none, "cpu, N threads; cuda: none (WHY)".
  std::string backend_name() const;

 private:
  Planner(EngineChoice choice, std::unique_ptr<CpuBackend> cpu, std::unique_ptr<DeviceBackend> cuda,
          std::optional<CostModel> costs, std::string why_no_cuda, PlannerClock clock);
  // Of many messages alike, which go to one backend as a whole; nothing where both are to share.
  std::optional<Plan> deal_out_unsorted(const Payload& payload, double load_factor);
  Plan deal_out(const Payload& payload, Sorted sorted, double load_factor);
  std::uint64_t whole_if_sooner(const Work& work, double load_factor, std::uint64_t share,
                                double cpu_before, double cuda_before) const;
  struct Dealt {
    std::uint64_t share;
    bool teaches = true;  // what its time says is learned
  };
  class Disturbance;
  Dealt share_or_trial(const Work& work, double load_factor, std::uint64_t share);
  std::array<double, 2> backlogs() const;  // nanoseconds, by Side
  PlannedPart predict(Side side, const Work& work, double bytes) const;
  Plan begin(Plan plan);

  EngineChoice choice_;
  std::optional<CostModel> costs_;  // of automatic; without them all is the cpu's
  CudaStats measured_;              // what measuring the costs took
  struct State {
    std::atomic<Codec> record_codec = Codec::lz77;
    LearnedCosts learned;
    std::mutex mutex;                 // of all below, and of who learns
    std::array<BusyPeriods, 2> busy;  // by Side
    Trials trials;
    double load_factor = 1;  // of those
  };
  std::unique_ptr<State> state_ = std::make_unique<State>();
  PlannerClock clock_;
  std::unique_ptr<CpuBackend> cpu_;
  std::unique_ptr<DeviceBackend> cuda_;  // goes first: it finishes what fails on the cpu
  std::string why_no_cuda_;
};

std::unique_ptr<Engine> make_engine(Planner planner);

}  // namespace nacre::engine
