// SPDX-License-Identifier: Apache-2.0
// Lists on the command lines of the programs that measure.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// The parts of a text between its commas; one empty part of an empty text.
std::vector<std::string> split_list(const std::string& text);

// Counts of threads, "1,2,4"; of an empty text 1 and the number of cores. Error: invalid_argument,
// with what is wrong.
Result<std::vector<unsigned>> parse_thread_counts(const std::string& text);

// Error: invalid_argument unless an operation may be measured for this long.
Result<> check_seconds(double seconds);

}  // namespace nacre::tools
