// SPDX-License-Identifier: Apache-2.0
// nacre bench seeds: the source papers' own tables, with ours beside them.
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

// options.only: the papers; its largest thread count is that of "all threads". json: a file, "-",
// or empty. invalid_argument for a paper that is none, or a size.
Result<> bench_seeds(const SeedArguments& arguments, const BenchOptions& options,
                     BenchEngines& engines, const BenchData& data, const std::string& json);

}  // namespace nacre::tools
