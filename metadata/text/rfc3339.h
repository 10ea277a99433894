// SPDX-License-Identifier: Apache-2.0
// Points in time as text: RFC 3339, in UTC, to the second ("2026-01-31T23:59:59Z").
#pragma once

#include <cstdint>
#include <string>

namespace nacre::metadata {

std::string rfc3339(std::int64_t seconds_since_1970);
std::string rfc3339_now();

}  // namespace nacre::metadata
