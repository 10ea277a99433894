// SPDX-License-Identifier: Apache-2.0
// What a program of Nacre writes to standard error: messages, one a line, and progress as
// ProgressPrinter (tools/cli/terminal.h) prints it on a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace nacre::tools::web {

// One line of progress. Amounts are as exact as the line, which has one decimal place.
struct PrintedProgress {
  std::string stage;
  std::string unit;  // "bytes" or "rows"
  std::uint64_t done = 0;
  std::optional<std::uint64_t> total;
};
// "encrypting: 12.3 MiB of 45.0 MiB (27 %), 3.0 MiB/s, 0:00:11 left"
std::optional<PrintedProgress> parse_progress(std::string_view line);

// Splits the stream. Not thread-safe.
class MessageStream {
 public:
  using OnProgress = std::function<void(const PrintedProgress& progress)>;
  explicit MessageStream(OnProgress on_progress) : on_progress_(std::move(on_progress)) {}

  void take(std::string_view bytes);
  // The messages so far, with line ends; at most the last 64 KiB.
  std::string messages();

 private:
  void end_line(bool is_message);
  OnProgress on_progress_;
  std::string line_, messages_;
  bool is_at_return_ = false;  // a return came, and nothing after it
};

}  // namespace nacre::tools::web
