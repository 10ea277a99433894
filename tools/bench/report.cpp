// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/report.h"

#include <cstdio>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

using nlohmann::ordered_json;

constexpr double giga = 1e9;

// "64K"
std::string short_size(std::size_t bytes) {
  if (bytes >= 1u << 20 && bytes % (1u << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1u << 10 && bytes % (1u << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

// The number with three or four significant digits.
std::string rounded_figures(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  if (value >= 100) return fmt::format("{:.1f}", value);
  if (value >= 10) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string rate_figures(const BenchRow& row, double per_second) {
  return rounded_figures(row.unit == BenchUnit::bytes ? per_second / giga : per_second);
}

ordered_json to_json(const BenchRow& row) {
  ordered_json json = {{"family", row.family},
                       {"operation", row.operation},
                       {"chunk_size_bytes", row.chunk_size_bytes},
                       {"thread_count", row.thread_count},
                       {"by", row.by},
                       {"kind", row.is_library ? "library" : "backend"},
                       {"note", row.note},
                       {"built_in", row.missing.empty()},
                       {"unit", row.unit == BenchUnit::bytes ? "bytes" : "operations"},
                       {"per_second", nullptr},
                       {"per_second_lowest", nullptr},
                       {"per_second_highest", nullptr},
                       {"per_cpu_second", nullptr},
                       {"ratio", nullptr},
                       {"against_library", nullptr}};
  if (row.rate) {
    json["per_second"] = row.rate->median;
    json["per_second_lowest"] = row.rate->lowest;
    json["per_second_highest"] = row.rate->highest;
    json["per_cpu_second"] = row.rate->per_cpu_second;
  }
  if (row.ratio) json["ratio"] = *row.ratio;
  if (row.against_library) json["against_library"] = *row.against_library;
  if (row.payload_size_bytes > 0) json["payload_bytes"] = row.payload_size_bytes;
  if (row.against_better) json["against_better"] = *row.against_better;
  return json;
}

}  // namespace

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

BenchReport::BenchReport(const BenchData& data, BenchSetting setting, bool with_table)
    : data_(data), setting_(std::move(setting)), with_table_(with_table) {
  if (with_table_) print_head();
}

void BenchReport::print_head() const {
  const std::size_t once = data_.bytes.size() / setting_.repeated;
  const std::string kept = setting_.repeated == 1
                               ? format_bytes(once)
                               : fmt::format("{} × {}", setting_.repeated, format_bytes(once));
  if (data_.source.empty()) {
    fmt::print("data: {} of generated text. No PATH was given; your own files will differ.\n",
               kept);
  } else if (data_.total_bytes == once) {
    fmt::print("data: {}, {}\n", printable(data_.source), kept);
  } else {
    fmt::print("data: {}, {} spread over its {}\n", printable(data_.source), kept,
               format_bytes(data_.total_bytes));
  }
  std::string engines;
  for (const std::string& engine : setting_.engines)
    engines += (engines.empty() ? "" : ", ") + engine;
  fmt::print("on:   {}, {} cores; engine: {}\n", processor_name(),
             std::thread::hardware_concurrency(), engines);
  if (setting_.ceilings) {
    const engine::DeviceCeilings& most = *setting_.ceilings;
    fmt::print(
        "most: {} GB/s to the device, {} from it, {} each way at once; {} within it (read and "
        "write)\n",
        rounded_figures(most.host_to_device / giga), rounded_figures(most.device_to_host / giga),
        rounded_figures(most.both_ways / giga), rounded_figures(most.device_copy / giga));
  }
  fmt::print(
      "Medians of {} rounds or more in which everybody has his turn. ±: half the spread. per "
      "core:\n"
      "for each second of processor time. ×: times as fast as the first library below.\n",
      bench_round_count);
}

void BenchReport::add(std::vector<BenchRow> rows) {
  bool is_first = true;
  for (BenchRow& row : rows) {
    if (with_table_) print_row(row, is_first);
    is_first = false;
    rows_.push_back(std::move(row));
  }
  if (with_table_) std::fflush(stdout);
}

void BenchReport::add_to_last(BenchRow row) {
  if (with_table_) {
    print_row(row, false);
    std::fflush(stdout);
  }
  rows_.push_back(std::move(row));
}

void BenchReport::print_row(const BenchRow& row, bool is_first) {
  constexpr const char* line = "{:<25} {:>5} {:>3}  {:<20} {:>8} {:>5} {:>8} {:>6} {:>6}\n";
  if (row.family != family_) {
    family_ = row.family;
    const char* unit = row.unit == BenchUnit::bytes ? "GB/s" : "ops/s";
    fmt::print("\n");
    fmt::print(fmt::runtime(line), row.family, "size", "thr", "by", unit, "± %", "per core",
               "ratio", "×");
  }
  std::string operation = is_first ? row.operation : "";
  if (is_first && row.payload_size_bytes > 0)
    operation += " of " + short_size(row.payload_size_bytes);
  const std::string size =
      is_first && row.chunk_size_bytes > 0 ? short_size(row.chunk_size_bytes) : "";
  const std::string threads = is_first ? fmt::format("{}", row.thread_count) : "";
  if (!row.rate) {
    fmt::print("{:<25} {:>5} {:>3}  {:<20} not built in: install {} and build again\n", operation,
               size, threads, row.by, row.missing);
    return;
  }
  const Rate& rate = *row.rate;
  const double spread = rate.median > 0 ? 50 * (rate.highest - rate.lowest) / rate.median : 0;
  fmt::print(fmt::runtime(line), operation, size, threads, row.by, rate_figures(row, rate.median),
             fmt::format("{:.0f}", spread), rate_figures(row, rate.per_cpu_second),
             row.ratio ? fmt::format("{:.3f}", *row.ratio) : "",
             row.against_library ? fmt::format("{:.2f}", *row.against_library) : "");
  if (!row.note.empty()) fmt::print("{:<37}({})\n", "", row.note);
  if (row.against_better)
    fmt::print("{:<37}({:.2f} of the better one of cpu and cuda)\n", "", *row.against_better);
}

ordered_json to_json(const std::optional<engine::DeviceCeilings>& ceilings) {
  if (!ceilings) return nullptr;
  return {{"to_device_bytes_per_second", ceilings->host_to_device},
          {"from_device_bytes_per_second", ceilings->device_to_host},
          {"both_ways_bytes_per_second", ceilings->both_ways},
          {"device_copy_bytes_per_second", ceilings->device_copy}};
}

std::string BenchReport::json() const {
  ordered_json rows = ordered_json::array();
  for (const BenchRow& row : rows_)
    rows.push_back(to_json(row));
  const ordered_json whole = {{"schema", "nacre bench 1"},
                              {"version", NACRE_VERSION},
                              {"processor", processor_name()},
                              {"core_count", std::thread::hardware_concurrency()},
                              {"device_ceilings", to_json(setting_.ceilings)},
                              {"engines", setting_.engines},
                              {"data",
                               {{"generated", data_.source.empty()},
                                {"path", data_.source},
                                {"bytes", data_.bytes.size()},
                                {"total_bytes", data_.total_bytes}}},
                              {"seconds", setting_.seconds},
                              {"round_count", bench_round_count},
                              {"rows", rows}};
  // Paths may be any bytes.
  return whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace nacre::tools
