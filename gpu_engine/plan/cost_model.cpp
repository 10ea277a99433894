// SPDX-License-Identifier: Apache-2.0
// Interpolation, the split, and the file of costs: a line "nacre-engine-costs 2 MACHINE", then for
// each backend and class a line with nanoseconds by size and the class's name, then the classes
// that are split.
#include "gpu_engine/plan/cost_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gpu_engine/base/folder_owner.h"
#include "gpu_engine/base/limits.h"

namespace nacre::engine {
namespace {

constexpr std::string_view magic = "nacre-engine-costs 2 ";
// Count this up when a kernel or a codec of the cpu becomes faster or slower, or when a class is
// measured in another way. Costs that were kept are then measured again.
constexpr int model_version = 8;
// The search for a split tries shares of 1/16, 2/16 and so on.
constexpr int share_steps = 16;
// While the cpu has a backlog, a device may take this many times as long as the cpu for work that
// does not split, and still get it.
constexpr double hardly_slower = 1.3;

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// The class that differs only in that many threads of a device share each message. Classes that are
// so already are returned as they are.
WorkClass parallel_class(WorkClass work) {
  switch (work.kind) {
    case WorkKind::crypt_serial:
    case WorkKind::crypt_hmac:
      return {WorkKind::crypt};
    case WorkKind::crypt_des_serial:
      return {WorkKind::crypt_des};
    case WorkKind::seal_hmac:
      return {WorkKind::seal, work.codec};
    case WorkKind::unseal_hmac:
      return {WorkKind::unseal, work.codec};
    case WorkKind::reseal_hmac:
      return {WorkKind::reseal};
    default:
      return work;
  }
}

}  // namespace

double CostModel::predict(const ClassCosts& costs, std::size_t i) {
  const auto size = [](std::size_t at) { return static_cast<double>(sizes[at]); };
  if (i == 1) return costs[0] * size(1) / size(0);
  const double growth = std::max(0.0, costs[i - 1] - costs[i - 2]);
  return costs[i - 1] + growth * (size(i) - size(i - 1)) / (size(i - 1) - size(i - 2));
}

CostModel::ClassCosts CostModel::without_hiccups(ClassCosts measured) {
  for (std::size_t i = size_count - 1; i > 0; --i)
    measured[i - 1] = std::min(measured[i - 1], measured[i]);
  return measured;
}

double CostModel::cost(const Costs& costs, WorkClass work, double bytes) {
  const ClassCosts& at = costs[index_of(work)];
  if (bytes <= 0) return 0;
  if (bytes <= static_cast<double>(sizes.front())) return at.front();
  std::size_t i = 1;
  while (i + 1 < size_count && static_cast<double>(sizes[i]) < bytes)
    ++i;
  const auto low = static_cast<double>(sizes[i - 1]);
  const auto high = static_cast<double>(sizes[i]);
  return at[i - 1] + (at[i] - at[i - 1]) * (bytes - low) / (high - low);
}

// A message runs on one thread, so a few messages take as long as one message for each thread.
double CostModel::cpu_ns(WorkClass work, double bytes, double longest) const {
  const double share = std::max(bytes, longest * cpu_threads_) / static_cast<double>(sizes.front());
  return cost(cpu_, work, bytes) * std::min(1.0, share);
}

// The smallest measured payload is a few messages of one chunk each, all of which run at once. So
// the costs of the serial and the parallel class differ there by one thread's time for a chunk.
double CostModel::cuda_ns(WorkClass work, double bytes, double longest) const {
  if (bytes <= 0) return 0;
  const WorkClass parallel = parallel_class(work);
  const double ns = cost(cuda_, work, bytes);
  if (parallel == work) return ns;
  const double serial_ns =
      std::max(0.0, cuda_[index_of(work)].front() - cuda_[index_of(parallel)].front());
  constexpr auto measured_size = static_cast<double>(chunk_size_bytes_default);
  return std::max(cost(cuda_, parallel, bytes),
                  ns + serial_ns * (longest - measured_size) / measured_size);
}

std::uint64_t CostModel::cuda_share(const Work& work, double cuda_load, double cpu_backlog_ns,
                                    double cuda_backlog_ns, const LearnedCosts* learned) const {
  const auto whole = static_cast<double>(work.bytes);
  const auto factor = [&](Side side, double bytes) {
    return learned == nullptr
               ? 1
               : learned->factor(LearnedCosts::cell_of(side, work.work_class, bytes));
  };
  const auto on_cpu = [&](double part) {
    return part == 0
               ? 0
               : cpu_backlog_ns + cpu_ns(work.work_class, part, static_cast<double>(work.longest)) *
                                      factor(Side::cpu, part);
  };
  const auto on_cuda = [&](double part) {
    const double load = part * cuda_load;
    return part == 0 ? 0
                     : cuda_backlog_ns +
                           cuda_ns(work.work_class, load, static_cast<double>(work.longest)) *
                               factor(Side::cuda, load);
  };
  const bool splits = splits_[index_of(work.work_class)];
  // Where both backends wait for the same memory, a share that a slower device takes off the cpu's
  // queue holds up the rest of that queue. A device that is hardly slower gets work all the same:
  // it leaves the cores to the threads that make the payloads.
  const double slower_max = cpu_backlog_ns > 0 ? hardly_slower : 1;
  if (!splits && on_cuda(whole) - cuda_backlog_ns > slower_max * (on_cpu(whole) - cpu_backlog_ns))
    return 0;
  int best = 0;
  double best_ns = on_cpu(whole);
  const int first_step = splits ? 1 : share_steps;
  for (int step = first_step; step <= share_steps; ++step) {
    const double share = whole * step / share_steps;
    const double ns = std::max(on_cpu(whole - share), on_cuda(share));
    // A split must gain enough to be worth its trouble.
    if (ns < best_ns * 0.97) {
      best = step;
      best_ns = ns;
    }
  }
  return work.bytes / share_steps * static_cast<std::uint64_t>(best) +
         (best == share_steps ? work.bytes % share_steps : 0);
}

std::string CostModel::machine(const std::string& cpu_name, const std::string& cuda_name) {
  return fmt::format("{}, model {}; {}; {}; {}", NACRE_VERSION, model_version, processor_name(),
                     cpu_name, cuda_name);
}

std::optional<CostModel> CostModel::read(const std::string& file, const std::string& machine,
                                         unsigned cpu_threads) {
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line) || line != fmt::format("{}{}", magic, machine))
    return std::nullopt;
  Costs costs[2];
  for (Costs& of_backend : costs) {
    for (ClassCosts& of_class : of_backend) {
      if (!std::getline(in, line)) return std::nullopt;
      std::istringstream numbers(line);
      for (double& ns : of_class) {
        if (!(numbers >> ns) || !std::isfinite(ns) || ns <= 0) return std::nullopt;
      }
    }
  }
  if (!std::getline(in, line) || line.size() != work_class_count ||
      line.find_first_not_of("01") != std::string::npos)
    return std::nullopt;
  return CostModel(costs[0], costs[1], WorkClasses(line), cpu_threads);
}

namespace {

// Makes the file if there is none of that name. If the folder belongs to another user, as under
// sudo, the file is given to that user.
bool write_new_file(const std::filesystem::path& path, std::string_view text) {
  const int folder = open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const int file = openat(folder, path.filename().c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool good = file >= 0 && give_to_folder_owner(folder, file) == 0;
  good = good && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) close(file);
  close(folder);
  return good;
}

}  // namespace

void CostModel::write(const std::string& file, const std::string& machine) const {
  const std::filesystem::path path(file);
  make_folders_for_owner(path.parent_path());
  const std::filesystem::path temporary =
      path.parent_path() / fmt::format("{}.{}.{}", path.filename().string(), getpid(),
                                       reinterpret_cast<std::uintptr_t>(this));
  std::ostringstream out;
  out << magic << machine << '\n';
  for (const Costs* of_backend : {&cpu_, &cuda_}) {
    for (std::size_t i = 0; i < work_class_count; ++i) {
      for (const double ns : (*of_backend)[i])
        out << std::llround(ns) << ' ';
      out << to_string(work_class_at(i)) << '\n';
    }
  }
  out << splits_ << '\n';
  std::error_code error;
  if (write_new_file(temporary, out.str())) {
    std::filesystem::rename(temporary, path, error);
    if (!error) return;
  }
  std::filesystem::remove(temporary, error);
}

}  // namespace nacre::engine
