// SPDX-License-Identifier: Apache-2.0
#include "tools/web/message_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace nacre::tools::web {

namespace {

constexpr std::size_t messages_size_max = 64u << 10;
constexpr std::size_t line_size_max = 16u << 10;
constexpr std::string_view clear_line = "\033[K";

struct Amount {
  std::uint64_t value = 0;
  bool is_rows = false;
};

// Takes "12.3 MiB", "512 B" or "77 rows" from the front of the text.
std::optional<Amount> take_amount(std::string_view& text) {
  double number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || number < 0) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  double scale = 1;
  constexpr std::array<std::string_view, 8> units = {" B",   " KiB", " MiB", " GiB",
                                                     " TiB", " PiB", " EiB", " rows"};
  for (const std::string_view unit : units) {
    if (rest.starts_with(unit)) {
      const bool is_rows = unit == " rows";
      rest.remove_prefix(unit.size());
      text = rest;
      return Amount{static_cast<std::uint64_t>(number * (is_rows ? 1 : scale)), is_rows};
    }
    scale *= 1024;
  }
  return std::nullopt;
}

// ECMA-48, SGR: "ESC [ 0;1;31 m".
std::string without_colours(std::string line) {
  for (auto at = line.find("\x1b["); at != std::string::npos; at = line.find("\x1b[", at)) {
    const auto end = line.find_first_not_of("0123456789;", at + 2);
    if (end == std::string::npos || line[end] != 'm') {
      ++at;
    } else {
      line.erase(at, end + 1 - at);
    }
  }
  return line;
}

}  // namespace

std::optional<PrintedProgress> parse_progress(std::string_view line) {
  for (auto at = line.find(": "); at != std::string_view::npos; at = line.find(": ", at + 1)) {
    std::string_view rest = line.substr(at + 2);
    const auto done = take_amount(rest);
    if (!done) continue;
    PrintedProgress progress{.stage = std::string(line.substr(0, at)),
                             .unit = done->is_rows ? "rows" : "bytes",
                             .done = done->value,
                             .total = {}};
    constexpr std::string_view of = " of ";
    if (rest.starts_with(of)) {
      rest.remove_prefix(of.size());
      const auto total = take_amount(rest);
      if (!total || !rest.starts_with(" (")) continue;
      progress.total = total->value;
      rest.remove_prefix(std::min(rest.size(), rest.find(')') + 1));
    }
    constexpr std::string_view comma = ", ";
    if (!rest.starts_with(comma)) continue;
    rest.remove_prefix(comma.size());
    if (take_amount(rest) && rest.starts_with("/s")) return progress;
  }
  return std::nullopt;
}

void MessageStream::take(std::string_view bytes) {
  for (const char byte : bytes) {
    // systemctl ends its lines by "\r\r\n" on a terminal, so what a return ends may be a message.
    if (byte == '\n') {
      end_line(true);
    } else if (byte == '\r') {
      is_at_return_ = true;
      if (parse_progress(line_)) end_line(false);
    } else {
      if (is_at_return_) end_line(false);
      if (line_.size() < line_size_max) line_ += byte;
    }
  }
}

std::string MessageStream::messages() {
  end_line(!is_at_return_);
  return messages_;
}

void MessageStream::end_line(bool is_message) {
  std::string line = without_colours(std::exchange(line_, {}));
  is_at_return_ = false;
  while (line.starts_with(clear_line))
    line.erase(0, clear_line.size());
  if (line.empty()) return;
  if (const auto progress = parse_progress(line)) {
    if (on_progress_) on_progress_(*progress);
    return;
  }
  if (!is_message) return;
  messages_ += line + "\n";
  if (messages_.size() > messages_size_max) {
    messages_.erase(0, messages_.size() - messages_size_max);
  }
}

}  // namespace nacre::tools::web
