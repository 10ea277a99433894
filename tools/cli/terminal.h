// SPDX-License-Identifier: Apache-2.0
// The output of the commands: results go to stdout, everything else to stderr after the program's
// name. Also the progress of long jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "fs/check/finding.h"
#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/printable.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools {

// The name that messages begin with: "mkfs.nacre". Set once, at the start.
void set_program_name(std::string_view name);
std::string_view program_name();

// Each prints one line, whatever is in the text.
void print_note(std::string_view text);
void print_warning(std::string_view text);
void print_error(std::string_view text);
// Prints the error's message, and returns the exit code that belongs to it.
int report(const Error& error);

// "12.3 MiB"
std::string format_bytes(std::uint64_t bytes);
std::string hex(ByteView bytes);

// Prints the text as it is to standard output.
void print_raw(std::string_view text);

// How print_safely() shows an argument: texts lose what a terminal would take for a command. Names
// and labels come from volumes, which an attacker may have made.
template <typename T>
decltype(auto) shown_as(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return printable(std::string_view(value));
  } else {
    return (value);
  }
}
// Prints to standard output like fmt::print(), and makes each text among the arguments printable.
template <typename... Args>
void print_safely(fmt::format_string<decltype(shown_as(std::declval<const Args&>()))...> format,
                  const Args&... arguments) {
  print_raw(fmt::format(format, shown_as(arguments)...));
}
// A JSON value as indented text, without what a terminal would take for a command. Names are any
// bytes and JSON is UTF-8, so bytes that are not UTF-8 are replaced.
template <typename Json>
void print_as_json(const Json& value) {
  print_raw(printable_json(value.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n");
}

// Prints progress on stderr, with rate and time left: on a terminal one line that changes and is
// removed at the end, elsewhere one line a second. Not thread-safe.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(bool enabled);
  ~ProgressPrinter() { clear(); }
  void update(const fs::Progress& progress);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_;
  bool on_terminal_;
  bool line_is_shown_ = false;
  std::string stage_;
  Clock::time_point stage_start_;
  Clock::time_point last_print_;
};

}  // namespace nacre::tools
