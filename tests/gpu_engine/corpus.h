// SPDX-License-Identifier: Apache-2.0
// The corpus of test data that may lie next to the checkout, or where NACRE_CORPUS says: zip
// archives of one file each, or those files.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

struct CorpusFile {
  std::string name;
  Bytes bytes;
};

// Returns every stride-th chunk of 64 KiB of each of the seven files, in order. If there is no
// corpus, the result is empty, a line says what was skipped, and the test fails if NACRE_CORPUS is
// set.
std::vector<CorpusFile> read_corpus(std::size_t stride, const std::string& for_what);

}  // namespace nacre::engine
