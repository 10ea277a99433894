// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/size_argument.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace nacre::tools {

Result<std::uint64_t> parse_size(std::string_view text, std::uint64_t plain_unit_bytes) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a size: give a number, with K, M or G if you like", text));
  };
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return bad();
  std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  std::uint64_t unit = plain_unit_bytes;
  if (!suffix.empty()) {
    switch (suffix.front()) {
      case 'k':
      case 'K':
        unit = 1ull << 10;
        break;
      case 'M':
        unit = 1ull << 20;
        break;
      case 'G':
        unit = 1ull << 30;
        break;
      default:
        return bad();
    }
    suffix.remove_prefix(1);
    if (!suffix.empty() && suffix != "iB") return bad();
  }
  if (value > std::numeric_limits<std::uint64_t>::max() / unit) return bad();
  return value * unit;
}

}  // namespace nacre::tools
