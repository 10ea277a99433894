// SPDX-License-Identifier: Apache-2.0
// The pages of tests/vectors/gdeflate. They stand in for the corpus too: decoded, they are slices
// of its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

struct GdeflateVector {
  std::string file;
  std::size_t plain_size = 0;
  std::uint32_t plain_crc = 0;
  Bytes page;
};

// The size of the reference codec's page for an input.
struct GdeflateSize {
  std::string input;
  int level = 0;
  std::size_t page_size = 0;
};
// The sizes of all inputs whose names contain input_part.
std::vector<GdeflateSize> read_gdeflate_sizes(const std::string& input_part);

std::vector<GdeflateVector> read_gdeflate_vectors();
// 64 KiB of each of the seven files of the corpus.
std::vector<Bytes> read_corpus_samples();

}  // namespace nacre::engine
