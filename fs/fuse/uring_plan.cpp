// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the plan.
#include "fs/fuse/uring_plan.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "fs/fuse/protocol.h"

namespace nacre::fs {

namespace {

constexpr const char* switch_path = "/sys/module/fuse/parameters/enable_uring";
// A request that waits, for a disk or for other requests, keeps its thread and its entry. If more
// requests of a CPU than this wait, its other requests wait, too.
constexpr unsigned threads_per_cpu_max = 16;
constexpr unsigned threads_per_cpu_wanted = 8;
constexpr unsigned threads_per_cpu_min = 2;
// Extended attributes have up to 64 KiB, and the name comes with them.
constexpr std::size_t uring_payload_size_bytes_min = 128u << 10;
constexpr unsigned cpu_count_max = 8192;

std::optional<bool> read_switch() {
  std::ifstream file(switch_path);
  char value = 0;
  if (!(file >> value)) return std::nullopt;
  return value == 'Y' || value == '1';
}

// "0-3,8-11" has 8. Returns 1 if the file has nothing useful.
unsigned count_cpus(const char* path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  unsigned count = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view range = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), range.size() + 1));
    unsigned first = 0;
    const char* end = range.data() + range.size();
    const auto [dash, error] = std::from_chars(range.data(), end, first);
    if (error != std::errc{}) return std::max(1u, count);
    unsigned last = first;
    if (dash != end) std::from_chars(dash + 1, end, last);
    if (last >= first) count += last - first + 1;
  }
  return std::max(1u, count);
}

std::vector<unsigned> affinity() {
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(cpu_count_max), [](cpu_set_t* memory) { CPU_FREE(memory); });
  const std::size_t size = CPU_ALLOC_SIZE(cpu_count_max);
  std::vector<unsigned> result;
  if (!set || sched_getaffinity(0, size, set.get()) != 0) return result;
  for (unsigned cpu = 0; cpu < cpu_count_max; ++cpu) {
    if (CPU_ISSET_S(cpu, size, set.get())) result.push_back(cpu);
  }
  return result;
}

}  // namespace

UringMachine UringMachine::current() {
  return {.enabled = read_switch(),
          .possible_cpu_count = count_cpus("/sys/devices/system/cpu/possible"),
          .online_cpu_count = count_cpus("/sys/devices/system/cpu/online"),
          .own_cpus = affinity()};
}

Result<UringPlan> plan_uring(const UringMachine& machine, UringMode mode) {
  if (mode == UringMode::off) return fail(ErrorCode::unsupported, "io_uring=off");
  if (!machine.enabled) {
    return fail(ErrorCode::unsupported, "this kernel has no FUSE over io_uring (Linux 6.14 has)");
  }
  if (!*machine.enabled) {
    return fail(ErrorCode::unsupported,
                fmt::format("FUSE over io_uring is switched off in {}", switch_path));
  }
  UringPlan plan;
  plan.queue_count = machine.possible_cpu_count;
  for (const unsigned cpu : machine.own_cpus) {
    if (cpu < plan.queue_count) plan.own_cpus.push_back(cpu);
  }
  const auto own = static_cast<unsigned>(plan.own_cpus.size());
  if (own == 0 || (mode == UringMode::automatic && 2 * own < machine.online_cpu_count)) {
    return fail(ErrorCode::unsupported,
                fmt::format("this process may run on {} of {} CPUs only, and would serve the "
                            "others' requests slowly",
                            own, machine.online_cpu_count));
  }
  const unsigned foreign = plan.queue_count - own;
  for (std::size_t size = protocol::data_size_bytes_max; size >= uring_payload_size_bytes_min;
       size /= 2) {
    const auto whole = static_cast<unsigned>(uring_payload_bytes_max / size);
    const bool smallest = size == uring_payload_size_bytes_min;
    const unsigned per_foreign = smallest ? 1 : 2;
    if (foreign * per_foreign >= whole) continue;
    const unsigned per_own = (whole - foreign * per_foreign) / own;
    if (per_own < (smallest ? threads_per_cpu_min : threads_per_cpu_wanted)) continue;
    plan.threads_per_cpu = std::min(per_own, threads_per_cpu_max);
    plan.entries_per_foreign_queue = per_foreign;
    plan.payload_size_bytes = size;
    return plan;
  }
  return fail(ErrorCode::unsupported,
              fmt::format("the queues of {} possible CPUs would take more than {} MiB",
                          plan.queue_count, uring_payload_bytes_max >> 20));
}

Result<> enable_uring() {
  // If FUSE is a module, opening the device loads it.
  if (const int fd = ::open("/dev/fuse", O_RDWR | O_CLOEXEC); fd >= 0) ::close(fd);
  const std::optional<bool> enabled = read_switch();
  if (!enabled) {
    return fail(ErrorCode::unsupported,
                "mount option io_uring=on: this kernel has no FUSE over io_uring (Linux 6.14 has)");
  }
  if (*enabled) return {};
  std::ofstream file(switch_path);
  file << 'Y';
  file.close();
  if (!file) {
    return fail(ErrorCode::permission,
                fmt::format("mount option io_uring=on: FUSE over io_uring is switched off, and "
                            "only root can change that: echo Y > {}",
                            switch_path));
  }
  return {};
}

}  // namespace nacre::fs
