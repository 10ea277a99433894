// SPDX-License-Identifier: Apache-2.0
// The corpus of test data that may lie beside the checkout, or where NACRE_CORPUS says: zip
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

// Of each of the seven files every stride-th chunk of 64 KiB, in order. Empty when there is no
// corpus; then a line says what was skipped, and where NACRE_CORPUS is set the test fails.
std::vector<CorpusFile> read_corpus(std::size_t stride, const std::string& for_what);

}  // namespace nacre::engine
