// SPDX-License-Identifier: Apache-2.0
// What the commands say and to whom: results on stdout, all else on stderr with the program's name
// in front; progress of long jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "fs/maintenance/finding.h"
#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools {

// The name that messages begin with: "mkfs.nacre". Set once, at the start.
void set_program_name(std::string_view name);
std::string_view program_name();

void print_note(std::string_view text);
void print_warning(std::string_view text);
void print_error(std::string_view text);
// The error's words; returns the exit code that belongs to it.
int report(const Error& error);

// "12.3 MiB"
std::string format_bytes(std::uint64_t bytes);
std::string hex(ByteView bytes);
// Without what a terminal would take for a command: names come from volumes, and those from anyone.
std::string printable(std::string_view text);

// Prints progress on stderr: one line that changes, with rate and time left, on a terminal; a line
// a second elsewhere. The line is taken away at the end. Not thread-safe.
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
