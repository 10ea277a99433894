// SPDX-License-Identifier: Apache-2.0
// Interpolation, the split, and the file of costs: a line "nacre-engine-costs 1 MACHINE", then for
// each backend and class a line of nanoseconds by size, then the classes that are split.
#include "gpu_engine/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace nacre::engine {
namespace {

constexpr std::string_view magic = "nacre-engine-costs 1 ";
// A split is looked for in steps of this share.
constexpr int share_steps = 16;

}  // namespace

WorkClass class_of(const Payload& payload, const Message& message) {
  switch (message.operation) {
    case Operation::seal:
      return message.codec == Codec::none ? WorkClass::seal_plain : WorkClass::seal_coded;
    case Operation::unseal:
      return WorkClass::unseal;
    case Operation::reseal:
      return WorkClass::reseal;
    case Operation::compress:
      return message.codec == Codec::none ? WorkClass::seal_plain : WorkClass::compress;
    case Operation::decompress:
      return WorkClass::decompress;
    case Operation::checksum:
      return WorkClass::checksum;
    default:
      break;
  }
  if (message.key_index >= payload.key_table.size()) return WorkClass::crypt;
  const KeyUse& use = payload.key_table[message.key_index].use;
  const Direction direction =
      message.operation == Operation::encrypt ? Direction::encrypt : Direction::decrypt;
  const bool serial = use.kind == KeyKind::block_cipher
                          ? is_serial(use.mode, direction)
                          : construction(use.suite) != SuiteConstruction::gcm;
  return serial ? WorkClass::crypt_serial : WorkClass::crypt;
}

std::uint64_t size_of(const Message& message) {
  const bool opens =
      message.operation == Operation::unseal || message.operation == Operation::decompress;
  return opens ? message.output_capacity : message.input_size;
}

double CostModel::cost(const Costs& costs, WorkClass work, double bytes) {
  const auto& at = costs[static_cast<std::size_t>(work)];
  if (bytes <= 0) return 0;
  if (bytes <= static_cast<double>(sizes.front())) return at.front();
  std::size_t i = 1;
  while (i + 1 < size_count && static_cast<double>(sizes[i]) < bytes)
    ++i;
  const auto low = static_cast<double>(sizes[i - 1]);
  const auto high = static_cast<double>(sizes[i]);
  return at[i - 1] + (at[i] - at[i - 1]) * (bytes - low) / (high - low);
}

std::uint64_t CostModel::cuda_share(WorkClass work, std::uint64_t bytes, double cuda_load,
                                    double cpu_backlog_ns, double cuda_backlog_ns) const {
  const auto whole = static_cast<double>(bytes);
  // Below the first size, the cpu's cost is in proportion; a device's is not.
  const auto on_cpu = [&](double part) {
    const double least = std::min(1.0, part / static_cast<double>(sizes.front()));
    return part == 0 ? 0 : cpu_backlog_ns + cpu_ns(work, part) * least;
  };
  const auto on_cuda = [&](double part) {
    return part == 0 ? 0 : cuda_backlog_ns + cuda_ns(work, part * cuda_load);
  };
  int best = 0;
  double best_ns = on_cpu(whole);
  const int first_step = splits_[static_cast<std::size_t>(work)] ? 1 : share_steps;
  for (int step = first_step; step <= share_steps; ++step) {
    const double share = whole * step / share_steps;
    const double ns = std::max(on_cpu(whole - share), on_cuda(share));
    // A split has to be worth its trouble.
    if (ns < best_ns * 0.97) {
      best = step;
      best_ns = ns;
    }
  }
  return bytes / share_steps * static_cast<std::uint64_t>(best) +
         (best == share_steps ? bytes % share_steps : 0);
}

std::optional<CostModel> CostModel::read(const std::string& file, const std::string& machine) {
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line) || line != fmt::format("{}{}", magic, machine))
    return std::nullopt;
  Costs costs[2];
  for (Costs& of_backend : costs) {
    for (auto& of_class : of_backend) {
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
  return CostModel(costs[0], costs[1], std::bitset<work_class_count>(line));
}

void CostModel::write(const std::string& file, const std::string& machine) const {
  const std::filesystem::path path(file);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path temporary =
      path.parent_path() /
      fmt::format("{}.{}", path.filename().string(), reinterpret_cast<std::uintptr_t>(this));
  {
    std::ofstream out(temporary);
    out << magic << machine << '\n';
    for (const Costs* of_backend : {&cpu_, &cuda_}) {
      for (const auto& of_class : *of_backend) {
        for (const double ns : of_class)
          out << std::llround(ns) << ' ';
        out << '\n';
      }
    }
    out << splits_ << '\n';
    if (!out.flush()) {
      std::filesystem::remove(temporary, error);
      return;
    }
  }
  std::filesystem::rename(temporary, path, error);
  if (error) std::filesystem::remove(temporary, error);
}

}  // namespace nacre::engine
