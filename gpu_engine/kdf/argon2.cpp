// SPDX-License-Identifier: Apache-2.0
// Argon2id (RFC 9106, version 0x13) by libargon2, and the choice of its parameters.
#include <argon2.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "gpu_engine/kdf/kdf.h"

namespace nacre::engine {
namespace {

constexpr std::uint32_t lanes_max = 16;
constexpr std::size_t output_size_max = 1024;
constexpr std::uint32_t calibrated_memory_kib_min = 64u << 10;
// A volume moves between machines, so the calibrated memory must fit a small machine as well.
constexpr std::uint32_t calibrated_memory_kib_max = 1u << 20;
constexpr std::uint32_t calibrated_lanes_max = 4;

// The time of one argon2id() in microseconds; 0 when it failed.
std::uint64_t measure_us(const Argon2Parameters& parameters) {
  static constexpr std::array<Byte, 16> sample = {};
  const auto start = std::chrono::steady_clock::now();
  if (!argon2id(sample, sample, parameters, 32)) return 0;
  const auto took = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(took).count());
}

std::optional<std::uint64_t> number_in(const std::string& path, std::string_view name = {}) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    char* end = nullptr;
    const char* digits = line.c_str() + name.size();
    const std::uint64_t number = std::strtoull(digits, &end, 10);
    if (end != digits) return number;
  }
  return std::nullopt;
}

// The least memory that is left under any memory.max from this process's group up to the top
// (cgroup v2). Caches of files count as free.
std::uint64_t memory_kib_of_control_groups() {
  std::ifstream groups("/proc/self/cgroup");
  std::string group;
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) group = line.substr(3);
  }
  std::uint64_t least = UINT64_MAX;
  while (!group.empty()) {
    const std::string folder = "/sys/fs/cgroup" + group;
    if (const auto bound = number_in(folder + "/memory.max")) {
      const std::uint64_t used = number_in(folder + "/memory.stat", "anon ").value_or(0);
      least = std::min(least, *bound > used ? (*bound - used) / 1024 : 0);
    }
    if (group == "/") break;
    group.resize(std::max<std::size_t>(group.rfind('/'), 1));
  }
  return least;
}

}  // namespace

std::uint64_t machine_memory_kib() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size) / 1024;
}

std::uint64_t available_memory_kib() {
  std::ifstream information("/proc/meminfo");
  std::uint64_t available = 0;
  bool is_known = false;
  for (std::string line; std::getline(information, line);) {
    const bool is_memory = line.starts_with("MemAvailable:");
    if (!is_memory && !line.starts_with("SwapFree:")) continue;
    is_known = is_known || is_memory;
    available += std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
  }
  return std::min(is_known ? available : UINT64_MAX, memory_kib_of_control_groups());
}

Result<SecretBytes> argon2id(ByteView passphrase, ByteView salt, const Argon2Parameters& parameters,
                             std::size_t size) {
  const auto refuse = [](std::string_view what, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("Argon2id: {} {} is not between {} and {}", what, value, least, most));
  };
  if (parameters.memory_kib < argon2_memory_kib_min ||
      parameters.memory_kib > argon2_memory_kib_max)
    return refuse("memory in KiB", parameters.memory_kib, argon2_memory_kib_min,
                  argon2_memory_kib_max);
  if (parameters.passes < 1 || parameters.passes > argon2_passes_max)
    return refuse("pass count", parameters.passes, 1, argon2_passes_max);
  if (parameters.lanes < 1 || parameters.lanes > lanes_max)
    return refuse("lane count", parameters.lanes, 1, lanes_max);
  if (salt.size() < ARGON2_MIN_SALT_LENGTH || salt.size() > UINT32_MAX)
    return refuse("salt size", salt.size(), ARGON2_MIN_SALT_LENGTH, UINT32_MAX);
  if (size < ARGON2_MIN_OUTLEN || size > output_size_max)
    return refuse("output size", size, ARGON2_MIN_OUTLEN, output_size_max);

  SecretBytes output(size);
  const int status = argon2id_hash_raw(parameters.passes, parameters.memory_kib, parameters.lanes,
                                       passphrase.data(), passphrase.size(), salt.data(),
                                       salt.size(), output.mutable_view().data(), size);
  if (status == ARGON2_MEMORY_ALLOCATION_ERROR)
    return fail(ErrorCode::out_of_memory,
                fmt::format("Argon2id needs {} MiB of memory", parameters.memory_kib / 1024));
  if (status != ARGON2_OK)
    return fail(ErrorCode::invalid_argument,
                fmt::format("Argon2id: {}", argon2_error_message(status)));
  return output;
}

// Memory makes guessing expensive. So memory is raised first, and passes only once memory is at its
// maximum. Time grows linearly with both.
Argon2Parameters calibrate_argon2(std::uint32_t target_ms) {
  const auto memory_max = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      machine_memory_kib() / 8, calibrated_memory_kib_min, calibrated_memory_kib_max));
  Argon2Parameters chosen = {
      .memory_kib = calibrated_memory_kib_min,
      .passes = 1,
      .lanes = std::clamp(std::thread::hardware_concurrency(), 1u, calibrated_lanes_max)};
  const std::uint64_t took_us = measure_us(chosen);
  if (took_us == 0) return chosen;

  const std::uint64_t target_us = std::uint64_t{target_ms} * 1000;
  const std::uint64_t wanted_kib = chosen.memory_kib * target_us / took_us;
  if (wanted_kib <= memory_max) {
    constexpr std::uint64_t mib = 1024;
    chosen.memory_kib =
        std::max(static_cast<std::uint32_t>(wanted_kib / mib * mib), calibrated_memory_kib_min);
    return chosen;
  }
  chosen.memory_kib = memory_max;
  chosen.passes = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(wanted_kib / memory_max, 1, argon2_passes_max));
  return chosen;
}

}  // namespace nacre::engine
