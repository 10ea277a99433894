// SPDX-License-Identifier: Apache-2.0
// Files of published test vectors, in the form of NIST's response files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {

struct ResponseCase {
  std::map<std::string, std::string> fields;
  bool must_fail = false;
  Bytes operator[](const std::string& name) const { return from_hex(fields.at(name)); }
};

// Reads lines of the form "Name = value". Each line with the name of the first line begins a case.
// A line FAIL marks a case that must be refused.
std::vector<ResponseCase> read_response_file(const std::string& name, const std::string& first);

}  // namespace nacre::engine
