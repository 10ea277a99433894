// SPDX-License-Identifier: Apache-2.0
// nacre bench seeds: the source papers' tables, with our figures next to theirs.
#pragma once

#include <cstdint>
#include <string>

#include "tools/bench/data.h"
#include "tools/bench/group.h"

namespace nacre::tools {

struct SeedArguments {
  std::string size_max = "256M";
  std::string markdown;  // a file
  std::string figures;   // a folder
  std::string note;
};

// options.only names the papers; the largest thread count is that of "all threads". json: a file,
// "-", or empty. Error: invalid_argument for an unknown paper or a bad size.
Result<> bench_seeds(const SeedArguments& arguments, const BenchOptions& options,
                     BenchEngines& engines, const BenchData& data, const std::string& json);

}  // namespace nacre::tools
