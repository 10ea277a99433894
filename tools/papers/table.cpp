// SPDX-License-Identifier: Apache-2.0
#include "tools/papers/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace nacre::tools {
namespace {

constexpr SeedTime on_device[] = {&SeedTimes::kernels, &SeedTimes::with_copies};

struct Prefix {
  double factor;
  const char* name;
};

// The number with three significant digits.
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

SeedCell rate_cell(double bytes, const std::optional<double>& seconds, SeedUnit unit) {
  if (!seconds) return {};
  if (unit == SeedUnit::seconds) return *seconds;
  return (unit == SeedUnit::bits_per_second ? 8 : 1) * bytes / *seconds;
}

SeedCell ratio(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b && *b > 0 ? SeedCell(*a / *b) : SeedCell();
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

std::string SeedComparison::title(SeedTime time) const {
  if (time == &SeedTimes::plain) return contenders_.plain_name + ", one thread";
  if (time == &SeedTimes::plain_all) return contenders_.plain_name + ", all threads";
  if (time == &SeedTimes::library) return "library, one thread";
  if (time == &SeedTimes::library_all) return "library, all threads";
  return time == &SeedTimes::kernels ? "GPU kernels" : "GPU with copies";
}

void SeedComparison::add_columns(SeedTable& table) const {
  for (const SeedTime time : contenders_.shown) {
    table.plot.y.push_back(table.columns.size());
    table.columns.push_back({title(time), contenders_.unit});
  }
  for (const SeedTime other : contenders_.beaten) {
    for (const SeedTime ours : on_device)
      table.columns.push_back({title(ours) + " by " + title(other), SeedUnit::times});
  }
}

void SeedComparison::add_row(SeedTable& table, std::vector<SeedCell> row, const SeedTimes& times,
                             double bytes) {
  keep_library_name(times);
  for (const SeedTime time : contenders_.shown)
    row.push_back(rate_cell(bytes, times.*time, contenders_.unit));
  for (const SeedTime other : contenders_.beaten) {
    for (const SeedTime ours : on_device)
      row.push_back(ratio(times.*other, times.*ours));
  }
  table.rows.push_back(std::move(row));
}

void SeedComparison::add_place(double size, const SeedTimes& times, const std::string& group) {
  auto found = std::ranges::find(groups_, group, &Group::name);
  if (found == groups_.end()) found = groups_.insert(found, {group, {}});
  found->places.push_back({size, times});
  keep_library_name(times);
}

void SeedComparison::keep_library_name(const SeedTimes& times) {
  if (!times.library_name.empty()) library_name_ = times.library_name;
}

std::string SeedComparison::crossover(const Group& group, SeedTime other) const {
  const auto at = [&](double size) {
    return to_text(size, contenders_.size_unit) + contenders_.size_noun;
  };
  double from = 0, last = 0;
  bool is_ahead = false, has_any = false;
  for (const Place& place : group.places) {
    const auto& [ours, theirs] = std::pair(place.times.with_copies, place.times.*other);
    if (!ours || !theirs) continue;
    const bool wins = *ours < *theirs;
    if (wins && !is_ahead) from = place.size;
    is_ahead = wins;
    has_any = true;
    last = place.size;
  }
  if (!has_any) return "not measured";
  return is_ahead ? "from " + at(from) + " on" : "not up to " + at(last);
}

void SeedComparison::add_notes(SeedTable& table) const {
  table.notes.push_back("The library is " + (library_name_.empty() ? "none" : library_name_) + ".");
  for (const Group& group : groups_) {
    std::string note = "Crossover" + (group.name.empty() ? "" : " of " + group.name) +
                       ", the GPU with copies ahead of: ";
    const char* separator = "";
    for (const SeedTime time : contenders_.shown) {
      if (std::ranges::find(on_device, time) != std::end(on_device)) continue;
      note += separator + title(time) + ", " + crossover(group, time);
      separator = "; ";
    }
    table.notes.push_back(note + ".");
  }
}

}  // namespace nacre::tools
