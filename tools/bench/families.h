// SPDX-License-Identifier: Apache-2.0
// The families of operations that `nacre bench` knows.
#pragma once

#include <span>

#include "tools/bench/group.h"

namespace nacre::tools {

struct BenchFamily {
  const char* name;
  const char* description;
  Result<> (*run)(Bench& bench);
};
// In the order in which `all` runs them.
std::span<const BenchFamily> bench_families();

Result<> bench_codecs(Bench& bench);
Result<> bench_ciphers(Bench& bench);
Result<> bench_checksums(Bench& bench);
Result<> bench_rsa(Bench& bench);
Result<> bench_seal(Bench& bench);

}  // namespace nacre::tools
