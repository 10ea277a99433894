// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/base/printable.h"

#include <cstddef>
#include <cstdint>

namespace nacre {

namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr char32_t malformed = 0xffffffff;

struct Character {
  char32_t code;
  std::size_t size_bytes;
};

// The first character of a text that is not empty (RFC 3629). A byte that does not begin a
// character counts as malformed.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  struct Form {
    unsigned mask, lead;
    std::size_t size;
    char32_t least;
  };
  constexpr Form forms[] = {
      {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
  for (const Form& form : forms) {
    if ((first & form.mask) != form.lead) continue;
    if (text.size() < form.size) break;
    char32_t code = first & ~form.mask;
    for (std::size_t i = 1; i < form.size; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return {malformed, 1};
      code = code << 6 | (byte(i) & 0x3f);
    }
    const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < form.least || code > 0x10ffff || is_surrogate) break;
    return {code, form.size};
  }
  return {malformed, 1};
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void append_hex(std::string& out, std::string_view prefix, std::uint32_t value, int digit_count) {
  out += prefix;
  for (int i = digit_count - 1; i >= 0; --i)
    out += hex_digits[value >> (4 * i) & 15];
}

enum class Kind { value, lines, json };

std::string escape(std::string_view text, Kind kind) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    const auto byte = static_cast<unsigned char>(text.front());
    // White space between JSON's tokens. Its strings contain none.
    const bool is_space =
        (next.code < 0x20 && kind == Kind::json) || (next.code == '\n' && kind == Kind::lines);
    if (next.code == malformed) {
      append_hex(out, "\\x", byte, 2);
    } else if (!is_control(next.code) || is_space) {
      out += text.substr(0, next.size_bytes);
    } else if (next.code < 0x80 && kind != Kind::json) {
      append_hex(out, "\\x", byte, 2);
    } else {
      append_hex(out, "\\u", next.code, 4);
    }
    text.remove_prefix(next.size_bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return escape(text, Kind::value);
}
std::string printable_lines(std::string_view text) {
  return escape(text, Kind::lines);
}
std::string printable_json(std::string_view json) {
  return escape(json, Kind::json);
}

}  // namespace nacre
