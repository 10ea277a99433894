// SPDX-License-Identifier: Apache-2.0
// Reads NIST response files.
#include "tests/gpu_engine/response_file.h"

#include <sstream>

namespace nacre::engine {

std::vector<ResponseCase> read_response_file(const std::string& name, const std::string& first) {
  std::vector<ResponseCase> cases;
  std::istringstream lines(read_vector(name));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('#', 0) == 0) continue;
    if (line.rfind(first + " =", 0) == 0) cases.emplace_back();
    if (line == "FAIL") cases.back().must_fail = true;
    const std::size_t equals = line.find(" =");
    if (cases.empty() || equals == std::string::npos) continue;
    const std::string value = line.size() > equals + 3 ? line.substr(equals + 3) : "";
    cases.back().fields[line.substr(0, equals)] = value;
  }
  return cases;
}

}  // namespace nacre::engine
