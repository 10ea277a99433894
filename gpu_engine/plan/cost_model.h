// SPDX-License-Identifier: Apache-2.0
// What work costs on each backend of this machine, measured once and kept in a file; and how work
// is divided by these costs.
//
// A cost is the time of a whole payload of one class, by the payload's size. No single speed
// describes a device: it needs milliseconds for the smallest batch, and little more for a larger
// one. Between measured sizes costs are interpolated. Beyond the last size they grow as between the
// last two. Below the first size the cpu's cost is in proportion to the size, as long as there are
// messages for all threads, and a device's cost stays the same. Where one thread of a device runs a
// whole message, the device takes at least as long as the thread with the longest message. A
// CostModel never changes, so all calls are thread-safe.
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
  // The sizes of the measured payloads, in plain bytes.
  static constexpr std::array<std::uint64_t, size_count> sizes = {1u << 20, 4u << 20, 16u << 20,
                                                                  64u << 20};
  using ClassCosts = std::array<double, size_count>;       // nanoseconds, by size
  using Costs = std::array<ClassCosts, work_class_count>;  // by index_of()

  // Runs payloads on both backends, for two or three seconds in all, in memory from allocate.
  // Nothing when there is no memory or a message fails. cpu_threads: the number of the cpu's
  // threads.
  static std::optional<CostModel> measure(Backend& cpu, Backend& cuda,
                                          const std::function<Result<Arena>(std::size_t)>& allocate,
                                          unsigned cpu_threads);
  // Predicts the cost of sizes[i], i at least 1, from the costs of smaller sizes. With one smaller
  // size: in proportion to the size. With more: the cost grows as between the two before, and never
  // falls.
  static double predict(const ClassCosts& costs, std::size_t i);
  // Removes disturbances of single runs. More work never costs less, and a disturbance only adds
  // time. So the cost of each size is lowered to the least cost of the larger sizes.
  static ClassCosts without_hiccups(ClassCosts measured);
  // Names everything that costs depend on: the backends, the processor, and the versions of the
  // engine and of this model.
  static std::string machine(const std::string& cpu_name, const std::string& cuda_name);
  // The costs in the file; nothing when the file does not exist, is damaged, or was written for
  // another machine().
  static std::optional<CostModel> read(const std::string& file, const std::string& machine,
                                       unsigned cpu_threads);
  // Replaces the whole file. A failure is ignored: the next process measures the costs again.
  void write(const std::string& file, const std::string& machine) const;

  // splits: the classes whose payloads end sooner on both backends together than on the better one
  // alone. They do not where both backends wait for the host's memory.
  CostModel(const Costs& cpu, const Costs& cuda, const WorkClasses& splits,
            unsigned cpu_threads = 1)
      : cpu_(cpu), cuda_(cuda), splits_(splits), cpu_threads_(cpu_threads) {}

  // longest: bytes of the longest message.
  double cpu_ns(WorkClass work, double bytes, double longest) const;
  double cuda_ns(WorkClass work, double bytes, double longest) const;
  // How many bytes of the work to give to the devices so that all of it ends soonest. Each backend
  // first has its backlog of other work to do. A class that does not split goes as a whole to one
  // backend: to the cpu where devices alone, without their backlog, are slower, however long the
  // cpu's backlog is (with a backlog of the cpu: more than 1.3 times as slow). cuda_load: the work
  // of each device relative to when the costs were measured; above 1 when others are lost. learned:
  // factors for the costs; nullptr: costs are as measured.
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
