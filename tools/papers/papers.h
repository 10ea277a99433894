// SPDX-License-Identifier: Apache-2.0
// Runs the source papers' tables, and writes them with our figures next to theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_engine/base/result.h"
#include "tools/bench/data.h"
#include "tools/bench/group.h"

namespace nacre::tools {

struct PaperArguments {
  std::vector<std::string> only;        // papers, as "000"; empty: all
  std::vector<unsigned> thread_counts;  // the largest is that of "all threads"
  double seconds = 1;                   // about this long for each figure
  std::string size_max = "256M";
  std::string json;      // a file, "-" for standard output, or empty
  std::string markdown;  // a file
  std::string figures;   // a folder
  std::string note;
};

// Errors: invalid_argument for an unknown paper or a bad size; io for an output that cannot be
// written, and where something computes wrong bytes.
Result<> run_papers(const PaperArguments& arguments, BenchEngines& engines, const BenchData& data);

}  // namespace nacre::tools
