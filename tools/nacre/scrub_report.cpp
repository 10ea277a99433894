// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/scrub_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "metadata/text/exact_bytes.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

using nlohmann::json;

namespace {

json part_of(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() ? *at : json();
}

std::string places(std::uint64_t count) {
  if (count == 0) return "no damage";
  return fmt::format("{} damaged {}", count, count == 1 ? "place" : "places");
}

std::string previous(const json& scrub) {
  const json before = part_of(scrub, "previous");
  if (text_of(before, "ended").empty()) return "";
  return fmt::format("; the last one finished {} and found {}", text_of(before, "ended"),
                     places(number_of(before, "damage_count")));
}

void print_place(const json& place) {
  const auto size = number_of(place, "size_bytes");
  print_safely(
      "{}: {}: {}{}\n", text_of(place, "verdict"), text_of(place, "file"),
      size == 0 ? "" : fmt::format("{} bytes at offset {}: ", size, number_of(place, "offset")),
      text_of(place, "what"));
  const json paths = part_of(place, "paths");
  for (const auto& path : paths) {
    if (path.is_string()) print_safely("    {}\n", printable(path.get<std::string>()));
  }
  if (text_of(place, "owner") == "nobody") print_safely("    no file uses it\n");
}

}  // namespace

std::uint64_t number_of(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

std::string text_of(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_string() ? printable(at->get<std::string>()) : "";
}

std::string path_of(const json& object, const char* name) {
  return printable(metadata::get_bytes(object, name).value_or(std::string()));
}

std::string scrub_line(const json& scrub) {
  const std::string state = text_of(scrub, "state");
  const auto damage_count = number_of(scrub, "damage_count");
  if (state == "running" || state == "paused") {
    const auto rate = number_of(scrub, "rate_bytes_per_second");
    return fmt::format("{}: {} of {} verified{}, {} so far{}", state,
                       format_bytes(number_of(scrub, "done_bytes")),
                       format_bytes(number_of(scrub, "total_bytes")),
                       rate == 0 ? "" : fmt::format(" at {} a second at most", format_bytes(rate)),
                       places(damage_count), previous(scrub));
  }
  if (state == "finished") {
    return fmt::format("finished {}: {} verified, {}", text_of(scrub, "ended"),
                       format_bytes(number_of(scrub, "done_bytes")), places(damage_count));
  }
  if (state == "stopped") {
    const std::string error = text_of(scrub, "error");
    return fmt::format(
        "stopped {}{}: {} of {} verified, {}{}", text_of(scrub, "ended"),
        error.empty() ? "" : " (" + error + ")", format_bytes(number_of(scrub, "done_bytes")),
        format_bytes(number_of(scrub, "total_bytes")), places(damage_count), previous(scrub));
  }
  return "never";
}

void print_scrub(const std::string& volume, const json& scrub) {
  if (text_of(scrub, "state") == "none") {
    print_safely("{}: no scrub has been made yet\n", printable(volume));
    return;
  }
  const json found = part_of(scrub, "places");
  for (const auto& place : found)
    print_place(place);
  if (const auto count = number_of(scrub, "damage_count"); count > found.size()) {
    print_safely("… and {} more; fsck.nacre --deep lists them\n", count - found.size());
  }
  print_safely("records: {} in {} segments, {}\n", number_of(scrub, "record_count"),
               number_of(scrub, "segment_count"), format_bytes(number_of(scrub, "segment_bytes")));
  print_safely("database: {} files, {}\n", number_of(scrub, "database_file_count"),
               format_bytes(number_of(scrub, "database_bytes")));
  print_safely("{}: {}\n", printable(volume), scrub_line(scrub));
}

}  // namespace nacre::tools
