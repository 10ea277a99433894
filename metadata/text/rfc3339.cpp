// SPDX-License-Identifier: Apache-2.0
#include "metadata/text/rfc3339.h"

#include <fmt/format.h>

#include <ctime>

namespace nacre::metadata {

std::string rfc3339(std::int64_t seconds_since_1970) {
  const std::time_t seconds = seconds_since_1970;
  std::tm parts = {};
  if (gmtime_r(&seconds, &parts) == nullptr) return fmt::format("@{}", seconds_since_1970);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string rfc3339_now() {
  return rfc3339(std::time(nullptr));
}

}  // namespace nacre::metadata
