// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/terminal.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "tools/cli/exit_code.h"

namespace nacre::tools {

namespace {

std::string& name_of_program() {
  static std::string name = "nacre";
  return name;
}

void print_line(std::string_view kind, std::string_view text) {
  const std::string line = fmt::format("{}: {}{}\n", program_name(), kind, printable(text));
  // If stderr is closed, there is no way to tell the user.
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

std::string describe(const fs::Progress& progress, double seconds) {
  const bool in_bytes = progress.unit == fs::ProgressUnit::bytes;
  const auto amount = [&](std::uint64_t value) {
    return in_bytes ? format_bytes(value) : fmt::format("{} rows", value);
  };
  std::string line = fmt::format("{}: {}", printable(progress.stage), amount(progress.done));
  const double rate = seconds > 0 ? static_cast<double>(progress.done) / seconds : 0;
  if (progress.total > 0) {
    line += fmt::format(
        " of {} ({:.0f} %)", amount(progress.total),
        100.0 * static_cast<double>(progress.done) / static_cast<double>(progress.total));
  }
  line += fmt::format(", {}/s", amount(static_cast<std::uint64_t>(rate)));
  if (progress.total > progress.done && rate > 0) {
    const auto left = static_cast<std::uint64_t>(
        static_cast<double>(progress.total - progress.done) / rate + 0.5);
    line += fmt::format(", {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
  }
  return line;
}

}  // namespace

void set_program_name(std::string_view name) {
  name_of_program() = name;
}
std::string_view program_name() {
  return name_of_program();
}

void print_note(std::string_view text) {
  print_line("", text);
}
void print_warning(std::string_view text) {
  print_line("warning: ", text);
}
void print_error(std::string_view text) {
  print_line("", text);
}

int report(const Error& error) {
  // The verdict comes first, because the message might not say it.
  std::string text = error.message;
  const auto name = to_string(error.code);
  switch (error.code) {
    case ErrorCode::corrupt:
    case ErrorCode::tampered:
    case ErrorCode::rolled_back:
    case ErrorCode::wrong_key:
      text = text.empty() ? std::string(name) : fmt::format("{}: {}", name, text);
      break;
    default:
      if (text.empty()) text = name;
  }
  print_error(text);
  return exit_code_of(error.code);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string hex(ByteView bytes) {
  std::string out;
  for (const Byte byte : bytes)
    out += fmt::format("{:02x}", byte);
  return out;
}

void print_raw(std::string_view text) {
  // If it fails, the reader is gone, and the exit status is the answer.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
}

ProgressPrinter::ProgressPrinter(bool enabled)
    : enabled_(enabled), on_terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressPrinter::update(const fs::Progress& progress) {
  if (!enabled_) return;
  const auto now = Clock::now();
  if (progress.stage != stage_) {
    stage_ = progress.stage;
    stage_start_ = now;
    last_print_ = now;
    return;
  }
  const auto interval = on_terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(1);
  if (now - last_print_ < interval) return;
  last_print_ = now;
  const double seconds = std::chrono::duration<double>(now - stage_start_).count();
  const std::string line = describe(progress, seconds);
  if (on_terminal_) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    line_is_shown_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void ProgressPrinter::clear() {
  if (line_is_shown_) std::fputs("\r\033[K", stderr);
  line_is_shown_ = false;
}

}  // namespace nacre::tools
