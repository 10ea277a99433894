// SPDX-License-Identifier: Apache-2.0
// Every cipher suite, for tests that take them as a parameter.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/cipher/suite.h"

namespace nacre::engine {

inline std::vector<CipherSuite> all_suites() {
  std::vector<CipherSuite> all;
  for (unsigned number = 1; number <= cipher_suite_number_max; ++number)
    all.push_back(static_cast<CipherSuite>(number));
  return all;
}

// The name as GoogleTest takes it.
inline std::string test_name(CipherSuite suite) {
  std::string name(to_string(suite));
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

}  // namespace nacre::engine
