// SPDX-License-Identifier: Apache-2.0
// The error of a Result, for tests that expect one. Reading error() of a Result that has a value is
// undefined. It may well return 0, which is ErrorCode::corrupt, so a test written that way would
// pass although nothing failed.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <ostream>

#include "gpu_engine/base/result.h"

namespace nacre {

inline void PrintTo(ErrorCode code, std::ostream* out) {
  *out << to_string(code);
}

// Nothing when the result is a value.
template <typename T>
std::optional<ErrorCode> error_of(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error().code;
}

}  // namespace nacre
