// SPDX-License-Identifier: Apache-2.0
// What work costs on each backend of this machine, measured once and kept in a file; and how to
// deal work out by it.
//
// A cost is the time of a whole payload of one class, by its size: a device needs milliseconds for
// any batch, then grows slowly, so no single speed describes it. Between measured sizes costs are
// interpolated, beyond the last they grow as between the last two, below the first the cpu's are in
// proportion, as far as there are messages for all of its threads, and a device's stay. Where a
// device gives each message to one thread, it also takes as long as that thread does for the
// longest message. Immutable, so thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gpu_engine/backend.h"
#include "gpu_engine/plan/learned_costs.h"
#include "gpu_engine/plan/work_class.h"

namespace nacre::engine {

// Messages of one class.
struct Work {
  WorkClass work_class;
  std::uint64_t bytes = 0;    // of all of them
  std::uint64_t longest = 0;  // bytes of one
};

class CostModel {
 public:
  static constexpr std::size_t size_count = 4;
  // Plain bytes of the payloads that are measured.
  static constexpr std::array<std::uint64_t, size_count> sizes = {1u << 20, 4u << 20, 16u << 20,
                                                                  64u << 20};
  using ClassCosts = std::array<double, size_count>;       // nanoseconds, by size
  using Costs = std::array<ClassCosts, work_class_count>;  // by index_of()

  // Runs payloads on both backends, two or three seconds in all. allocate gives their memory.
  // Nothing when there is no memory or a message fails. cpu_threads: how many the cpu has.
  static std::optional<CostModel> measure(Backend& cpu, Backend& cuda,
                                          const std::function<Result<Arena>(std::size_t)>& allocate,
                                          unsigned cpu_threads);
  // Of sizes[i], at least 1, from those before it: in proportion to the first, else as between the
  // last two, and no less than the last.
  static double predict(const ClassCosts& costs, std::size_t i);
  // More never costs less: what was measured for a size is at most what was for a larger one, since
  // whatever else a machine does only adds to a run.
  static ClassCosts without_hiccups(ClassCosts measured);
  // Names what costs depend on: the backends, the processor, the engine's version and this model's.
  static std::string machine(const std::string& cpu_name, const std::string& cuda_name);
  // What a file of this machine says; nothing where there is none, or it is another machine's.
  static std::optional<CostModel> read(const std::string& file, const std::string& machine,
                                       unsigned cpu_threads);
  // Replaces the file as a whole. A cost that could not be kept is measured again: no error.
  void write(const std::string& file, const std::string& machine) const;

  // splits: classes for which both backends together are sooner than the better one alone. They
  // are not where the host's memory is what both wait for.
  CostModel(const Costs& cpu, const Costs& cuda, const WorkClasses& splits,
            unsigned cpu_threads = 1)
      : cpu_(cpu), cuda_(cuda), splits_(splits), cpu_threads_(cpu_threads) {}

  // longest: bytes of the longest message.
  double cpu_ns(WorkClass work, double bytes, double longest) const;
  double cuda_ns(WorkClass work, double bytes, double longest) const;
  // Of bytes of work, how many to give to the devices so that all ends soonest, when each backend
  // has that many nanoseconds of other work before it. None of a class that does not split where
  // the devices alone are slower, however busy the cpu is. cuda_load: how many times as much as
  // when the costs were measured each device has to take, since others are lost; at least 1.
  // learned: what costs are multiplied by; nullptr: they are as measured.
  std::uint64_t cuda_share(const Work& work, double cuda_load, double cpu_backlog_ns,
                           double cuda_backlog_ns, const LearnedCosts* learned = nullptr) const;

 private:
  static double cost(const Costs& costs, WorkClass work, double bytes);

  Costs cpu_;
  Costs cuda_;
  WorkClasses splits_;
  unsigned cpu_threads_;
};

}  // namespace nacre::engine
