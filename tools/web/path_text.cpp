// SPDX-License-Identifier: Apache-2.0
#include "tools/web/path_text.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "fs/control/mount_table.h"

namespace nacre::tools::web {

namespace {

// The size of the well-formed UTF-8 character at the front; 0 if there is none (RFC 3629).
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  }
  const unsigned second = byte(1);
  const bool is_bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return is_bad ? 0 : size;
}

bool is_control(std::string_view character) {
  if (character.size() == 1) {
    const auto byte = static_cast<unsigned char>(character[0]);
    return byte < 0x20 || byte == 0x7f;
  }
  const bool is_c1 = character.size() == 2 && character[0] == '\xc2' &&
                     static_cast<unsigned char>(character[1]) < 0xa0;
  return is_c1 || character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9";
}

// Calls plain for characters that are shown, and byte for each byte of anything else.
template <typename Plain, typename OtherByte>
void walk_text(std::string_view text, Plain plain, OtherByte other_byte) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = text.substr(0, size == 0 ? 1 : size);
    if (size == 0 || is_control(character)) {
      for (const char byte : character)
        other_byte(static_cast<unsigned char>(byte));
    } else {
      plain(character);
    }
    text.remove_prefix(character.size());
  }
}

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

bool is_unquoted(char byte) {
  constexpr std::string_view safe = "+,-./:=@_";
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || safe.find(byte) != std::string_view::npos;
}

}  // namespace

std::string to_path_text(std::string_view path) {
  std::string text;
  walk_text(
      path,
      [&](std::string_view character) {
        if (character == "%") {
          text += "%25";
        } else {
          text += character;
        }
      },
      [&](unsigned char byte) { text += fmt::format("%{:02X}", byte); });
  return text;
}

Result<std::string> from_path_text(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char byte = text[i];
    if (byte == '%') {
      const int high = i + 2 < text.size() ? digit_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? digit_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}: after '%' come two hexadecimal digits; write '%' itself as "
                                "%25",
                                text));
      }
      byte = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (byte == '\0') return fail(ErrorCode::invalid_argument, "a path has no NUL");
    path += byte;
  }
  return path;
}

Result<std::string> request_path(std::string_view path_text) {
  NACRE_ASSIGN(std::string path, from_path_text(path_text));
  if (path == "~") path = home_folder();
  if (path.starts_with("~/")) path = home_folder() + path.substr(1);
  if (!path.starts_with('/')) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is no absolute path: begin with / or ~/", path));
  }
  return fs::absolute_path(path);
}

std::string home_folder() {
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return home;
  std::string room(16u << 10, '\0');
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found) == 0 &&
      found != nullptr) {
    return entry.pw_dir;
  }
  return "/";
}

std::string last_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (path == "/" || slash == std::string_view::npos) return std::string(path);
  return std::string(path.substr(slash + 1));
}

// Within $'...' a quotation mark and a backslash are octal too: a shell that does not know $'...'
// takes it for '...', and then a name stays one word all the same.
std::string shell_quote(std::string_view argument) {
  bool is_plain = !argument.empty();
  bool has_others = false;
  walk_text(
      argument,
      [&](std::string_view character) {
        if (character.size() == 1 && !is_unquoted(character[0])) is_plain = false;
      },
      [&](unsigned char) { has_others = true; });
  if (is_plain && !has_others) return std::string(argument);
  std::string quoted = has_others ? "$'" : "'";
  walk_text(
      argument,
      [&](std::string_view character) {
        if (character == "'") {
          quoted += has_others ? "\\047" : "'\\''";
        } else if (character == "\\" && has_others) {
          quoted += "\\134";
        } else {
          quoted += character;
        }
      },
      [&](unsigned char byte) { quoted += fmt::format("\\{:03o}", byte); });
  return quoted + "'";
}

}  // namespace nacre::tools::web
