// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/stats_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/cli/terminal.h"
#include "tools/nacre/scrub_report.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

constexpr std::size_t indent = 17;

std::string bytes(const json& object, const char* name) {
  return format_bytes(number_of(object, name));
}

std::string stats_ratio(std::uint64_t plain_bytes, std::uint64_t stored_bytes) {
  if (stored_bytes == 0) return "nothing stored";
  return fmt::format("ratio {:.2f}",
                     static_cast<double>(plain_bytes) / static_cast<double>(stored_bytes));
}

std::string immovable_note(std::uint64_t count) {
  if (count == 0) return "";
  return fmt::format("; {} segments hold damaged records and stay as they are: run fsck.nacre",
                     count);
}

std::string format_age(std::uint64_t seconds) {
  const auto minutes = seconds / 60;
  if (minutes == 0) return fmt::format("{} s", seconds);
  if (minutes < 60) return fmt::format("{} min", minutes);
  if (minutes < 48 * 60) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} days {} h", minutes / 60 / 24, minutes / 60 % 24);
}

// Drops the space at the end, which may stand past the width.
std::size_t shown_size(std::string_view piece) {
  return piece.size() - (piece.ends_with(' ') ? 1 : 0);
}

// The text up to a comma, semicolon or colon and the space after it.
std::string_view take_clause(std::string_view& value) {
  std::size_t end = 0;
  do {
    end = value.find(' ', end + 1);
  } while (end != std::string_view::npos && value[end - 1] != ',' && value[end - 1] != ';' &&
           value[end - 1] != ':');
  const auto clause = value.substr(0, end == std::string_view::npos ? end : end + 1);
  value.remove_prefix(clause.size());
  return clause;
}

void print_space(const json& stats) {
  const json segments = part_of_stats(stats, "segments");
  const auto stored = number_of(segments, "stored_bytes");
  const auto live = number_of(segments, "live_bytes");
  print_stats_line("files",
                   fmt::format("{} with {}, {} in memory", number_of(stats, "inode_count"),
                               bytes(stats, "data_bytes"), number_of(stats, "known_inode_count")));
  print_stats_line("stored", fmt::format("{} for {} of files, {}", format_bytes(live),
                                         bytes(stats, "data_bytes"),
                                         stats_ratio(number_of(stats, "data_bytes"), live)));
  print_stats_line("segments",
                   fmt::format("{} with {}, {} of it live{}", number_of(segments, "segment_count"),
                               format_bytes(stored), format_bytes(live), share_of(live, stored)));
  print_stats_line("space",
                   fmt::format("{} live, {} dead, {} reclaimable{}", format_bytes(live),
                               bytes(segments, "dead_bytes"), bytes(segments, "reclaimable_bytes"),
                               immovable_note(number_of(segments, "immovable_segment_count"))));
}

void print_upkeep(const json& stats) {
  const json segments = part_of_stats(stats, "segments");
  const json compaction = part_of_stats(stats, "compaction");
  print_stats_line(
      "compaction",
      fmt::format("{}, {} segments rewritten, {} moved{}", text_of(compaction, "state"),
                  number_of(compaction, "segment_count"), bytes(segments, "moved_bytes"),
                  compaction.value("holds_writers", false) ? "; writers are held back" : ""));
  if (const json backup = part_of_stats(stats, "backup"); number_of(backup, "backup_count") > 0) {
    print_stats_line("backup",
                     fmt::format("{} under way, which keep {} from being freed",
                                 number_of(backup, "backup_count"), bytes(backup, "held_bytes")));
  }
  print_stats_line("scrub", scrub_line(part_of_stats(stats, "scrub")));
  const json checkpoint = part_of_stats(stats, "checkpoint");
  print_stats_line("checkpoint", fmt::format("{}, {} written", text_of(checkpoint, "state"),
                                             number_of(checkpoint, "written_count")));
  if (const json rotation = part_of_stats(stats, "rotation"); !rotation.empty()) {
    const auto total = number_of(rotation, "total_bytes");
    const std::string message = text_of(rotation, "message");
    const bool none = text_of(rotation, "rotation") == "none";
    print_stats_line(
        "keys",
        fmt::format("epoch {}, generation {} of the keyring; {}", number_of(rotation, "epoch"),
                    number_of(stats, "keyring_generation"),
                    none ? "no rotation under way"
                         : fmt::format("rotation {}, {} of {} done{}{}", text_of(rotation, "state"),
                                       bytes(rotation, "done_bytes"), format_bytes(total),
                                       message.empty() ? "" : ": ", message)));
  }
}

void print_written(const json& stats) {
  const json segments = part_of_stats(stats, "segments");
  const auto plain = number_of(segments, "appended_plain_bytes");
  const auto stored = number_of(segments, "appended_bytes");
  print_stats_line("written",
                   fmt::format("{} records since the mount, {} of files in {}{}",
                               number_of(segments, "appended_record_count"), format_bytes(plain),
                               format_bytes(stored), share_of(stored, plain)));
  const json codecs = part_of_stats(stats, "codecs");
  for (const auto& [codec, counts] : codecs.items()) {
    print_stats_line("  " + printable(codec),
                     fmt::format("{} records, {} in {}, {}", number_of(counts, "record_count"),
                                 bytes(counts, "plain_bytes"), bytes(counts, "stored_bytes"),
                                 stats_ratio(number_of(counts, "plain_bytes"),
                                             number_of(counts, "stored_bytes"))));
  }
  const json commits = part_of_stats(stats, "commits");
  print_stats_line(
      "commits",
      fmt::format("{} for {} requests, {} failed", number_of(commits, "commit_count"),
                  number_of(commits, "request_count"), number_of(commits, "failure_count")));
  const json database = part_of_stats(stats, "database");
  print_stats_line(
      "database",
      fmt::format("{} in tables, {} in the log, {} rows read", bytes(database, "table_file_bytes"),
                  bytes(database, "wal_bytes"), number_of(database, "row_read_count")));
}

void print_engine(const json& stats) {
  const json engine = part_of_stats(stats, "engine");
  const auto messages = number_of(engine, "message_count");
  std::string said =
      fmt::format("{}, {} messages in {} payloads, {} failed", text_of(engine, "backend"), messages,
                  number_of(engine, "payload_count"), number_of(engine, "failed_message_count"));
  if (const auto count = number_of(engine, "cuda_message_count"); count > 0) {
    said += fmt::format(
        "; {} by devices, {} of {}{}", count, bytes(engine, "cuda_input_bytes"),
        bytes(engine, "input_bytes"),
        share_of(number_of(engine, "cuda_input_bytes"), number_of(engine, "input_bytes")));
  }
  if (const auto failed = number_of(engine, "cuda_failed_batch_count"); failed > 0) {
    said += fmt::format("; {} batches that a device failed ran on the cpu", failed);
  }
  print_stats_line("engine", said);
  const auto sizes = engine.find("payload_sizes");
  if (sizes == engine.end() || !sizes->is_array() || sizes->empty()) return;
  std::string list;
  for (const json& size : *sizes) {
    list += fmt::format("{}{} below {}", list.empty() ? "" : ", ", number_of(size, "payload_count"),
                        bytes(size, "below_bytes"));
  }
  print_stats_line("payloads", list);
}

void print_requests(const json& stats) {
  const json requests = part_of_stats(stats, "requests");
  std::vector<std::pair<std::string, json>> operations;
  const json counted = part_of_stats(requests, "operations");
  for (const auto& [name, counts] : counted.items())
    operations.emplace_back(printable(name), counts);
  std::sort(operations.begin(), operations.end(), [](const auto& one, const auto& other) {
    return number_of(one.second, "count") > number_of(other.second, "count");
  });
  if (operations.empty()) return;
  print_safely("\n  {:<15} {:>11} {:>8} {:>9} {:>9} {:>9}\n", "requests", "count", "errors", "p50",
               "p99", "max");
  for (const auto& [name, counts] : operations) {
    print_safely("  {:<15} {:>11} {:>8} {:>9} {:>9} {:>9}\n", name, number_of(counts, "count"),
                 number_of(counts, "error_count"), format_duration(number_of(counts, "p50_ns")),
                 format_duration(number_of(counts, "p99_ns")),
                 format_duration(number_of(counts, "max_ns")));
  }
  std::string errors;
  const json failed = part_of_stats(requests, "errors");
  for (const auto& [name, count] : failed.items()) {
    errors += fmt::format("{}{} {}", errors.empty() ? "" : ", ", printable(name),
                          count.is_number_unsigned() ? count.get<std::uint64_t>() : 0);
  }
  print_stats_line("errors", errors.empty() ? "none" : errors);
}

}  // namespace

void print_stats_line(std::string_view name, std::string_view text) {
  const std::string safe = printable(text);
  std::string_view value = safe;
  std::string shown = fmt::format("  {:<14} ", name);
  std::size_t column = indent;
  const auto begin_line = [&] {
    while (shown.ends_with(' '))
      shown.pop_back();
    shown += fmt::format("\n{:{}}", "", indent);
    column = indent;
  };
  const auto add = [&](std::string_view piece) {
    shown += piece;
    column += piece.size();
  };
  while (!value.empty()) {
    const std::string_view clause = take_clause(value);
    if (column > indent && column + shown_size(clause) > stats_width) begin_line();
    if (indent + shown_size(clause) <= stats_width) {
      add(clause);
      continue;
    }
    for (std::string_view rest = clause; !rest.empty();) {
      const auto space = rest.find(' ');
      const auto word = rest.substr(0, space == std::string_view::npos ? space : space + 1);
      rest.remove_prefix(word.size());
      if (column > indent && column + shown_size(word) > stats_width) begin_line();
      add(word);
    }
  }
  print_raw(shown + "\n");
}

std::string share_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "";
  return fmt::format(" ({:.1f} %)", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

json part_of_stats(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_object() ? *at : json::object();
}

std::string format_duration(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.1f} µs", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.1f} s", value / 1e9);
}

void print_mounted_stats(const json& reply) {
  const json stats = part_of_stats(reply, "stats");
  print_safely("{} mounted at {} by process {}, nacre {}\n", path_of(reply, "volume"),
               path_of(reply, "mountpoint"), number_of(reply, "pid"), text_of(reply, "version"));
  print_stats_line("id", text_of(reply, "volume_id"));
  if (!text_of(reply, "label").empty()) print_stats_line("label", text_of(reply, "label"));
  print_stats_line("health", text_of(stats, "health"));
  if (!text_of(stats, "transport").empty())
    print_stats_line("transport", text_of(stats, "transport"));
  if (!text_of(stats, "sandbox").empty()) print_stats_line("sandbox", text_of(stats, "sandbox"));
  print_stats_line("mounted for", format_age(number_of(stats, "uptime_seconds")));
  print_space(stats);
  print_upkeep(stats);
  const auto hits = number_of(stats, "cache_hit_count");
  const auto misses = number_of(stats, "cache_miss_count");
  print_stats_line("memory", fmt::format("{} dirty, {} cached, {} hits{}, {} misses",
                                         bytes(stats, "dirty_bytes"), bytes(stats, "cached_bytes"),
                                         hits, share_of(hits, hits + misses), misses));
  print_written(stats);
  print_engine(stats);
  print_requests(stats);
}

}  // namespace nacre::tools
