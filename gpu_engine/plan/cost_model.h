// SPDX-License-Identifier: Apache-2.0
// What work costs on each backend of this machine, measured once and kept in a file; and how work
// is divided by these costs.
//
// A cost is the time of a whole payload of one class, by its size. No single speed describes a
// device: it needs milliseconds for any batch, and then grows slowly. Between measured sizes costs
// are interpolated. Beyond the last size they grow as between the last two. Below the first size
// the cpu's costs are in proportion, as long as there are messages for all of its threads, and a
// device's cost stays the same. Where a device gives each message to one thread, it takes at least
// as long as that thread does for the longest message. Immutable, so thread-safe.
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
  std::uint64_t bytes = 0;    // the sum over all of them
  std::uint64_t longest = 0;  // bytes of the longest one
};

class CostModel {
 public:
  static constexpr std::size_t size_count = 4;
  // The plain bytes of the payloads that are measured.
  static constexpr std::array<std::uint64_t, size_count> sizes = {1u << 20, 4u << 20, 16u << 20,
                                                                  64u << 20};
  using ClassCosts = std::array<double, size_count>;       // nanoseconds, by size
  using Costs = std::array<ClassCosts, work_class_count>;  // by index_of()

  // Runs payloads on both backends, for two or three seconds in all. allocate gives the memory for
  // them. Nothing when there is no memory or a message fails. cpu_threads: the cpu's number of
  // threads.
  static std::optional<CostModel> measure(Backend& cpu, Backend& cuda,
                                          const std::function<Result<Arena>(std::size_t)>& allocate,
                                          unsigned cpu_threads);
  // Predicts the cost of sizes[i], i at least 1, from those before it: from the first in
  // proportion, else as the cost grew between the last two, and no less than the last.
  static double predict(const ClassCosts& costs, std::size_t i);
  // Takes out what disturbed single runs. More work never costs less, and a disturbance only adds
  // to a time. So the cost of a size is at most that of any larger one.
  static ClassCosts without_hiccups(ClassCosts measured);
  // Names everything that costs depend on: the backends, the processor, the engine's version and
  // this model's.
  static std::string machine(const std::string& cpu_name, const std::string& cuda_name);
  // The costs in a file of this machine; nothing where there is no file, or it is another
  // machine's.
  static std::optional<CostModel> read(const std::string& file, const std::string& machine,
                                       unsigned cpu_threads);
  // Replaces the file as a whole. If it cannot be written, that is no error: the costs are measured
  // again.
  void write(const std::string& file, const std::string& machine) const;

  // splits: the classes for which both backends together are sooner than the better one alone.
  // Where both wait for the host's memory, they are not.
  CostModel(const Costs& cpu, const Costs& cuda, const WorkClasses& splits,
            unsigned cpu_threads = 1)
      : cpu_(cpu), cuda_(cuda), splits_(splits), cpu_threads_(cpu_threads) {}

  // longest: bytes of the longest message.
  double cpu_ns(WorkClass work, double bytes, double longest) const;
  double cuda_ns(WorkClass work, double bytes, double longest) const;
  // How many bytes of the work to give to the devices so that everything ends soonest, when each
  // backend has that many nanoseconds of other work before it. It is 0 for a class that does not
  // split where the devices alone are slower, however busy the cpu is. cuda_load: how many times as
  // much each device has to take as when the costs were measured, since others are lost; at least
  // 1. learned: factors for the costs; nullptr: costs are as measured.
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
