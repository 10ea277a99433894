// SPDX-License-Identifier: Apache-2.0
// nacre top MOUNTPOINT: shows each second what a mounted volume is doing. Rates and latencies are
// those since the last look.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/log_histogram.h"
#include "fs/control/mount_table.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/scrub_report.h"
#include "tools/nacre/stats_text.h"

namespace nacre::tools {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t shown_operation_count = 12;

struct TopArguments {
  std::string path;
  unsigned interval_seconds = 1;
  bool once = false;
};

struct Sample {
  json reply, stats;
  Clock::time_point taken;
};

Result<Sample> take_sample(const fs::MountEntry& mount) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_ASSIGN(auto reply, client.request_with({{"command", "stats"}, {"histograms", true}}, {}));
  json stats = part_of_stats(reply, "stats");
  return Sample{std::move(reply), std::move(stats), Clock::now()};
}

fs::HistogramCounts histogram_of(const json& operation) {
  fs::HistogramCounts counts;
  counts.buckets.resize(fs::histogram_bucket_count);
  counts.max = number_of(operation, "max_ns");
  const auto buckets = operation.is_object() ? operation.find("buckets") : operation.end();
  if (buckets == operation.end() || !buckets->is_array()) return counts;
  for (const json& pair : *buckets) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
        !pair[1].is_number_unsigned()) {
      continue;
    }
    const auto index = pair[0].get<std::uint64_t>();
    if (index >= counts.buckets.size()) continue;
    counts.buckets[index] = pair[1].get<std::uint64_t>();
    counts.count += counts.buckets[index];
  }
  return counts;
}

// The difference between two looks. The counts of a daemon that was restarted meanwhile begin at 0.
fs::HistogramCounts since(fs::HistogramCounts now, const fs::HistogramCounts& before) {
  now.count = 0;
  for (std::size_t i = 0; i < now.buckets.size(); ++i) {
    now.buckets[i] -= std::min(now.buckets[i], before.buckets[i]);
    now.count += now.buckets[i];
  }
  return now;
}

// Prints what changed since the look before.
class View {
 public:
  View(const Sample& before, const Sample& now, bool bold)
      : before_(before),
        now_(now),
        seconds_(std::max(1e-3, std::chrono::duration<double>(now.taken - before.taken).count())),
        bold_(bold) {}

  void print() const {
    head(fmt::format("{} at {}", path_of(now_.reply, "volume"), path_of(now_.reply, "mountpoint")));
    line("health", text_of(now_.stats, "health"));
    print_volume();
    print_upkeep();
    print_requests();
    std::fflush(stdout);
  }

 private:
  static void line(std::string_view name, const std::string& value) {
    print_stats_line(name, value);
  }
  void head(const std::string& text) const {
    print_raw(bold_ ? "\033[1m" : "");
    print_safely("{}", text);
    print_raw(bold_ ? "\033[0m\n" : "\n");
  }
  std::uint64_t grown(const char* part, const char* name) const {
    const bool at_top = *part == '\0';
    const std::uint64_t now =
        number_of(at_top ? now_.stats : part_of_stats(now_.stats, part), name);
    const std::uint64_t before =
        number_of(at_top ? before_.stats : part_of_stats(before_.stats, part), name);
    return now - std::min(now, before);
  }
  double per_second(std::uint64_t count) const { return static_cast<double>(count) / seconds_; }
  std::string rate(const char* part, const char* name) const {
    return format_bytes(static_cast<std::uint64_t>(per_second(grown(part, name)))) + "/s";
  }

  void print_volume() const {
    const json segments = part_of_stats(now_.stats, "segments");
    const auto data = number_of(now_.stats, "data_bytes");
    const auto live = number_of(segments, "live_bytes");
    line("files",
         fmt::format("{} with {}, stored in {}{}", number_of(now_.stats, "inode_count"),
                     format_bytes(data), format_bytes(live),
                     live == 0 ? ""
                               : fmt::format(", ratio {:.2f}", static_cast<double>(data) /
                                                                   static_cast<double>(live))));
    line("written",
         fmt::format("{} of files in {}, {:.1f} commits/s",
                     rate("segments", "appended_plain_bytes"), rate("segments", "appended_bytes"),
                     per_second(grown("commits", "commit_count"))));
    const auto hits = grown("", "cache_hit_count");
    const auto misses = grown("", "cache_miss_count");
    line("memory",
         fmt::format("{} dirty, {} cached, {:.0f} hits/s{}, {:.0f} misses/s",
                     format_bytes(number_of(now_.stats, "dirty_bytes")),
                     format_bytes(number_of(now_.stats, "cached_bytes")), per_second(hits),
                     share_of(hits, hits + misses), per_second(misses)));
    const auto cuda = grown("engine", "cuda_input_bytes");
    const auto all = grown("engine", "input_bytes");
    line("engine", fmt::format("{} in {:.0f} payloads/s{}", rate("engine", "input_bytes"),
                               per_second(grown("engine", "payload_count")),
                               cuda == 0 ? "" : fmt::format(", devices{}", share_of(cuda, all))));
  }

  void print_upkeep() const {
    line("compaction", fmt::format("{}, {} moved, {} to be had",
                                   text_of(part_of_stats(now_.stats, "compaction"), "state"),
                                   rate("segments", "moved_bytes"),
                                   format_bytes(number_of(part_of_stats(now_.stats, "segments"),
                                                          "reclaimable_bytes"))));
    line("scrub", scrub_line(part_of_stats(now_.stats, "scrub")));
    const json rotation = part_of_stats(now_.stats, "rotation");
    const auto done = number_of(rotation, "done_bytes");
    const auto total = number_of(rotation, "total_bytes");
    line("keys", fmt::format("epoch {}{}", number_of(rotation, "epoch"),
                             text_of(rotation, "rotation") == "none"
                                 ? ""
                                 : fmt::format(", rotation {}, {} of {}{}",
                                               text_of(rotation, "state"), format_bytes(done),
                                               format_bytes(total), share_of(done, total))));
  }

  void print_requests() const {
    struct Row {
      std::string name;
      fs::HistogramCounts counts;
      std::uint64_t errors;
    };
    const json now = part_of_stats(part_of_stats(now_.stats, "requests"), "operations");
    const json before = part_of_stats(part_of_stats(before_.stats, "requests"), "operations");
    std::vector<Row> rows;
    std::uint64_t count = 0;
    for (const auto& [name, operation] : now.items()) {
      const json earlier = part_of_stats(before, name.c_str());
      Row row{printable(name), since(histogram_of(operation), histogram_of(earlier)),
              number_of(operation, "error_count") -
                  std::min(number_of(operation, "error_count"), number_of(earlier, "error_count"))};
      count += row.counts.count;
      if (row.counts.count > 0) rows.push_back(std::move(row));
    }
    std::sort(rows.begin(), rows.end(), [](const Row& one, const Row& other) {
      return one.counts.count > other.counts.count;
    });
    if (rows.size() > shown_operation_count) rows.resize(shown_operation_count);
    print_safely("\n");
    head(fmt::format("  {:<15} {:>9} {:>9} {:>9} {:>9} {:>9}", "requests", "/s", "errors/s", "p50",
                     "p90", "p99"));
    print_safely("  {:<15} {:>9.0f}\n", "all", per_second(count));
    for (const Row& row : rows) {
      print_safely(
          "  {:<15} {:>9.0f} {:>9.0f} {:>9} {:>9} {:>9}\n", row.name, per_second(row.counts.count),
          per_second(row.errors), format_duration(row.counts.quantile(0.5)),
          format_duration(row.counts.quantile(0.9)), format_duration(row.counts.quantile(0.99)));
    }
  }

  const Sample& before_;
  const Sample& now_;
  const double seconds_;
  const bool bold_;
};

Result<fs::MountEntry> find_mount(const std::string& path) {
  auto found = fs::find_nacre_mount(path);
  if (found) return found;
  const auto place = find_volume(path);
  if (place) {
    if (auto mount = fs::find_mount_of_volume(place->path)) return *mount;
    return fail(ErrorCode::not_found, fmt::format("{} is not mounted", path));
  }
  return found;
}

Result<> watch(const TopArguments& arguments) {
  NACRE_ASSIGN(const auto mount, find_mount(arguments.path));
  const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const bool bold = on_terminal && (no_color == nullptr || *no_color == '\0');
  NACRE_ASSIGN(Sample before, take_sample(mount));
  while (true) {
    std::this_thread::sleep_for(std::chrono::seconds(arguments.interval_seconds));
    NACRE_ASSIGN(Sample now, take_sample(mount));
    const bool repeats = on_terminal && !arguments.once;
    // Moves the cursor home and clears what is below; the scroll-back stays.
    if (repeats) print_raw("\033[H\033[J");
    View(before, now, bold).print();
    if (!repeats) return {};
    before = std::move(now);
  }
}

}  // namespace

void add_top_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("top", "Show what a mounted volume is doing, each second");
  auto arguments = std::make_shared<TopArguments>();
  command->add_option("MOUNTPOINT", arguments->path, "Where a volume is mounted, or its directory")
      ->required();
  command->add_option("--interval", arguments->interval_seconds, "Seconds between two looks")
      ->check(CLI::Range(1u, 3600u))
      ->capture_default_str();
  command->add_flag("--once", arguments->once,
                    "Show one interval and end; the default if standard output is no terminal");
  command->footer(
      "Ctrl-C ends it.\n"
      "Examples:\n"
      "  nacre top ~/private\n"
      "  nacre top --once --interval 10 ~/private      one line more for a log");
  command->callback([&action, arguments] {
    action = [arguments] {
      const auto watched = watch(*arguments);
      return watched ? exit_fine : report(watched.error());
    };
  });
}

}  // namespace nacre::tools
