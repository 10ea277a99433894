// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a request's JSON object. Each error is invalid_argument and names the field.
// A field of another type than asked for is an error, a field that nobody asks for is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

class Fields {
 public:
  // object outlives this.
  explicit Fields(const nlohmann::json& object) : object_(object) {}

  // A field that is missing or null counts as not given.
  bool has(const char* name) const;
  // A text without NUL. Error also if it is not given.
  Result<std::string> text(const char* name) const;
  Result<std::string> text_or(const char* name, std::string fallback) const;
  Result<bool> flag(const char* name) const;  // false if it is not given
  // A whole number from min to max, both inclusive.
  Result<std::uint64_t> number_or(const char* name, std::uint64_t fallback, std::uint64_t min,
                                  std::uint64_t max) const;
  Result<std::vector<std::string>> texts(const char* name) const;  // empty if it is not given
  // Path text of API.md, as a path.
  Result<std::string> path(const char* name) const;
  Result<std::string> path_or_empty(const char* name) const;
  Result<std::vector<std::string>> paths(const char* name) const;

 private:
  const nlohmann::json& object_;
};

}  // namespace nacre::tools::web
