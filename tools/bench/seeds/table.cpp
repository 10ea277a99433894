// SPDX-License-Identifier: Apache-2.0
// See table.h.
#include "tools/bench/seeds/table.h"

#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace nacre::tools {
namespace {

struct Prefix {
  double factor;
  const char* name;
};

// Three figures that matter.
std::string figures(double value) {
  if (std::abs(value) >= 100 || value == std::round(value)) {
    std::string digits = fmt::format("{:.0f}", value);
    for (std::size_t at = digits.size(); at > 3 + (digits[0] == '-' ? 1u : 0u);)
      digits.insert(at -= 3, ",");
    return digits;
  }
  if (std::abs(value) >= 10) return fmt::format("{:.1f}", value);
  if (std::abs(value) >= 0.1) return fmt::format("{:.2f}", value);
  return fmt::format("{:.2g}", value);
}

std::string with_prefix(double value, std::span<const Prefix> prefixes) {
  for (const Prefix& prefix : prefixes)
    if (std::abs(value) >= prefix.factor)
      return fmt::format("{} {}", figures(value / prefix.factor), prefix.name);
  const Prefix& last = prefixes.back();
  return fmt::format("{} {}", figures(value / last.factor), last.name);
}

std::string duration(double seconds) {
  static constexpr std::array<Prefix, 6> prefixes = {
      {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}};
  return seconds == 0 ? "0 ms" : with_prefix(seconds, prefixes);
}

std::string size(double bytes) {
  static constexpr std::array<Prefix, 4> prefixes = {
      {{1u << 30, "GiB"}, {1u << 20, "MiB"}, {1u << 10, "KiB"}, {1, "B"}}};
  return with_prefix(bytes, prefixes);
}

}  // namespace

SeedCell cell(const std::optional<double>& value) {
  return value ? SeedCell(*value) : SeedCell();
}

SeedCell ratio(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b && *b > 0 ? SeedCell(*a / *b) : SeedCell();
}

std::string crossover(const std::vector<double>& sizes,
                      const std::vector<std::optional<double>>& seconds,
                      const std::vector<std::optional<double>>& other_seconds) {
  double from = 0, last = 0;
  bool is_ahead = false, has_any = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!seconds[i] || !other_seconds[i]) continue;
    const bool wins = *seconds[i] < *other_seconds[i];
    if (wins && !is_ahead) from = sizes[i];
    is_ahead = wins;
    has_any = true;
    last = sizes[i];
  }
  if (!has_any) return "";
  return is_ahead ? "from " + size(from) + " on" : "not up to " + size(last);
}

std::string to_text(const SeedCell& cell, SeedUnit unit) {
  if (const auto* const text = std::get_if<std::string>(&cell)) return *text;
  const auto* const number = std::get_if<double>(&cell);
  if (number == nullptr) return "–";
  switch (unit) {
    case SeedUnit::seconds:
      return duration(*number);
    case SeedUnit::bytes:
      return size(*number);
    case SeedUnit::bits_per_second:
      return figures(*number / 1e6);
    case SeedUnit::bytes_per_second:
      return figures(*number / 1e9);
    case SeedUnit::times:
      return figures(*number) + "×";
    case SeedUnit::percent:
      return figures(*number) + " %";
    case SeedUnit::count:
    case SeedUnit::text:
      break;
  }
  return figures(*number);
}

const char* unit_name(SeedUnit unit) {
  if (unit == SeedUnit::bits_per_second) return "Mbit/s";
  return unit == SeedUnit::bytes_per_second ? "GB/s" : "";
}

}  // namespace nacre::tools
