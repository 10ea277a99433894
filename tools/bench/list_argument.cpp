// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/list_argument.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include <fmt/format.h>

namespace nacre::tools {

namespace {
constexpr unsigned thread_count_max = 1024;
}  // namespace

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

Result<std::vector<unsigned>> parse_thread_counts(const std::string& text) {
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  if (text.empty()) return cores == 1 ? std::vector{1u} : std::vector{1u, cores};
  std::vector<unsigned> counts;
  for (const std::string& part : split_list(text)) {
    unsigned count = 0;
    const char* const end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, count);
    if (error != std::errc() || rest != end || count < 1 || count > thread_count_max) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--threads {}: '{}' is not a number from 1 to {}; give some, with "
                              "commas between them: 1,2,4",
                              text, part, thread_count_max));
    }
    counts.push_back(count);
  }
  return counts;
}

Result<> check_seconds(double seconds) {
  if (seconds > 0 && seconds <= 3600) return {};
  return fail(ErrorCode::invalid_argument,
              "--seconds: the time for each operation is more than 0 and at most 3600");
}

}  // namespace nacre::tools
