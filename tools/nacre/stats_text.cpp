// SPDX-License-Identifier: Apache-2.0
// See stats_text.h.
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

std::uint64_t number(const json& object, const char* name) {
  return number_of(object, name);
}
std::string text(const json& object, const char* name) {
  return text_of(object, name);
}
json part(const json& object, const char* name) {
  return part_of_stats(object, name);
}
void line(std::string_view name, const std::string& value) {
  print_stats_line(name, value);
}
std::string bytes(const json& object, const char* name) {
  return format_bytes(number(object, name));
}

std::string ratio(std::uint64_t plain_bytes, std::uint64_t stored_bytes) {
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

// Without the space at its end, which may stand past the width.
std::size_t shown_size(std::string_view piece) {
  return piece.size() - (piece.ends_with(' ') ? 1 : 0);
}

// Up to a comma, semicolon or colon and the space behind it.
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
  const json segments = part(stats, "segments");
  const auto stored = number(segments, "stored_bytes");
  const auto live = number(segments, "live_bytes");
  line("files", fmt::format("{} with {}, {} in memory", number(stats, "inode_count"),
                            bytes(stats, "data_bytes"), number(stats, "known_inode_count")));
  line("stored", fmt::format("{} for {} of files, {}", format_bytes(live),
                             bytes(stats, "data_bytes"), ratio(number(stats, "data_bytes"), live)));
  line("segments", fmt::format("{} with {}, {} of it live{}", number(segments, "segment_count"),
                               format_bytes(stored), format_bytes(live), share_of(live, stored)));
  line("space", fmt::format("{} live, {} dead, {} reclaimable{}", format_bytes(live),
                            bytes(segments, "dead_bytes"), bytes(segments, "reclaimable_bytes"),
                            immovable_note(number(segments, "immovable_segment_count"))));
}

void print_upkeep(const json& stats) {
  const json segments = part(stats, "segments");
  const json compaction = part(stats, "compaction");
  line("compaction",
       fmt::format("{}, {} segments rewritten, {} moved", text(compaction, "state"),
                   number(compaction, "segment_count"), bytes(segments, "moved_bytes")));
  if (const json backup = part(stats, "backup"); number(backup, "backup_count") > 0) {
    line("backup", fmt::format("{} under way, which keep {} from being freed",
                               number(backup, "backup_count"), bytes(backup, "held_bytes")));
  }
  line("scrub", scrub_line(part(stats, "scrub")));
  const json checkpoint = part(stats, "checkpoint");
  line("checkpoint", fmt::format("{}, {} written", text(checkpoint, "state"),
                                 number(checkpoint, "written_count")));
  if (const json rotation = part(stats, "rotation"); !rotation.empty()) {
    const auto total = number(rotation, "total_bytes");
    const std::string message = text(rotation, "message");
    const bool none = text(rotation, "rotation") == "none";
    line("keys",
         fmt::format("epoch {}, generation {} of the keyring; {}", number(rotation, "epoch"),
                     number(stats, "keyring_generation"),
                     none ? "no rotation under way"
                          : fmt::format("rotation {}, {} of {} done{}{}", text(rotation, "state"),
                                        bytes(rotation, "done_bytes"), format_bytes(total),
                                        message.empty() ? "" : ": ", message)));
  }
}

void print_written(const json& stats) {
  const json segments = part(stats, "segments");
  const auto plain = number(segments, "appended_plain_bytes");
  const auto stored = number(segments, "appended_bytes");
  line("written",
       fmt::format("{} records, {} of files in {}{}", number(segments, "appended_record_count"),
                   format_bytes(plain), format_bytes(stored), share_of(stored, plain)));
  const json codecs = part(stats, "codecs");
  for (const auto& [codec, counts] : codecs.items()) {
    line("  " + printable(codec),
         fmt::format("{} records, {} in {}, {}", number(counts, "record_count"),
                     bytes(counts, "plain_bytes"), bytes(counts, "stored_bytes"),
                     ratio(number(counts, "plain_bytes"), number(counts, "stored_bytes"))));
  }
  const json commits = part(stats, "commits");
  line("commits", fmt::format("{} for {} requests, {} failed", number(commits, "commit_count"),
                              number(commits, "request_count"), number(commits, "failure_count")));
  const json database = part(stats, "database");
  line("database",
       fmt::format("{} in tables, {} in the log, {} rows read", bytes(database, "table_file_bytes"),
                   bytes(database, "wal_bytes"), number(database, "row_read_count")));
}

void print_engine(const json& stats) {
  const json engine = part(stats, "engine");
  const auto messages = number(engine, "message_count");
  std::string said =
      fmt::format("{}, {} messages in {} payloads, {} failed", text(engine, "backend"), messages,
                  number(engine, "payload_count"), number(engine, "failed_message_count"));
  if (const auto count = number(engine, "cuda_message_count"); count > 0) {
    said +=
        fmt::format("; {} by devices, {} of {}{}", count, bytes(engine, "cuda_input_bytes"),
                    bytes(engine, "input_bytes"),
                    share_of(number(engine, "cuda_input_bytes"), number(engine, "input_bytes")));
  }
  if (const auto failed = number(engine, "cuda_failed_batch_count"); failed > 0) {
    said += fmt::format("; {} batches that a device failed ran on the cpu", failed);
  }
  line("engine", said);
  const auto sizes = engine.find("payload_sizes");
  if (sizes == engine.end() || !sizes->is_array() || sizes->empty()) return;
  std::string list;
  for (const json& size : *sizes) {
    list += fmt::format("{}{} below {}", list.empty() ? "" : ", ", number(size, "payload_count"),
                        bytes(size, "below_bytes"));
  }
  line("payloads", list);
}

void print_requests(const json& stats) {
  const json requests = part(stats, "requests");
  std::vector<std::pair<std::string, json>> operations;
  const json counted = part(requests, "operations");
  for (const auto& [name, counts] : counted.items())
    operations.emplace_back(printable(name), counts);
  std::sort(operations.begin(), operations.end(), [](const auto& one, const auto& other) {
    return number(one.second, "count") > number(other.second, "count");
  });
  if (operations.empty()) return;
  fmt::print("\n  {:<15} {:>11} {:>8} {:>9} {:>9} {:>9}\n", "requests", "count", "errors", "p50",
             "p99", "max");
  for (const auto& [name, counts] : operations) {
    fmt::print("  {:<15} {:>11} {:>8} {:>9} {:>9} {:>9}\n", name, number(counts, "count"),
               number(counts, "error_count"), format_duration(number(counts, "p50_ns")),
               format_duration(number(counts, "p99_ns")),
               format_duration(number(counts, "max_ns")));
  }
  std::string errors;
  const json failed = part(requests, "errors");
  for (const auto& [name, count] : failed.items()) {
    errors += fmt::format("{}{} {}", errors.empty() ? "" : ", ", printable(name),
                          count.is_number_unsigned() ? count.get<std::uint64_t>() : 0);
  }
  line("errors", errors.empty() ? "none" : errors);
}

}  // namespace

void print_stats_line(std::string_view name, std::string_view value) {
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
  fmt::print("{}\n", shown);
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
  const json stats = part(reply, "stats");
  fmt::print("{} mounted at {} by process {}, nacre {}\n", text(reply, "volume"),
             text(reply, "mountpoint"), number(reply, "pid"), text(reply, "version"));
  line("id", text(reply, "volume_id"));
  if (!text(reply, "label").empty()) line("label", text(reply, "label"));
  line("health", text(stats, "health"));
  if (!text(stats, "transport").empty()) line("transport", text(stats, "transport"));
  line("mounted for", format_age(number(stats, "uptime_seconds")));
  print_space(stats);
  print_upkeep(stats);
  const auto hits = number(stats, "cache_hit_count");
  const auto misses = number(stats, "cache_miss_count");
  line("memory",
       fmt::format("{} dirty, {} cached, {} hits{}, {} misses", bytes(stats, "dirty_bytes"),
                   bytes(stats, "cached_bytes"), hits, share_of(hits, hits + misses), misses));
  print_written(stats);
  print_engine(stats);
  print_requests(stats);
}

}  // namespace nacre::tools
