// SPDX-License-Identifier: Apache-2.0
// Reads MANIFEST.tsv and the pages that it lists.
#include "tests/gpu_engine/gdeflate_vectors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "gpu_engine/codec/gdeflate/decoder.h"
#include "tests/support/source_folder.h"

namespace nacre::engine {
namespace {

// The machine that runs the tests may not have the source tree from which they were built.
std::string vector_path(const std::string& file) {
  const char* const folder = std::getenv("NACRE_VECTORS");
  return (folder != nullptr ? folder : tests::source_folder() + "/tests/vectors") + "/gdeflate/" +
         file;
}

}  // namespace

std::vector<GdeflateSize> read_gdeflate_sizes(const std::string& input_part) {
  std::ifstream manifest(vector_path("MANIFEST.tsv"));
  EXPECT_TRUE(manifest.good());
  std::string line;
  std::getline(manifest, line);
  std::vector<GdeflateSize> sizes;
  while (std::getline(manifest, line)) {
    std::istringstream fields(line);
    GdeflateSize size;
    std::string plain_size, crc;
    fields >> size.input >> size.level >> plain_size >> crc >> size.page_size;
    if (size.input.find(input_part) != std::string::npos) sizes.push_back(std::move(size));
  }
  return sizes;
}

std::vector<GdeflateVector> read_gdeflate_vectors() {
  std::ifstream manifest(vector_path("MANIFEST.tsv"));
  EXPECT_TRUE(manifest.good());
  std::string line;
  std::getline(manifest, line);
  std::vector<GdeflateVector> vectors;
  while (std::getline(manifest, line)) {
    std::istringstream fields(line);
    std::string input, level, crc, page_size;
    GdeflateVector vector;
    fields >> input >> level >> vector.plain_size >> crc >> page_size >> vector.file;
    vector.plain_crc = static_cast<std::uint32_t>(std::stoul(crc, nullptr, 16));
    std::ifstream file(vector_path(vector.file), std::ios::binary);
    vector.page.assign(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(vector.page.size(), std::stoul(page_size)) << vector.file;
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

std::vector<Bytes> read_corpus_samples() {
  std::vector<Bytes> samples;
  for (const GdeflateVector& vector : read_gdeflate_vectors()) {
    if (vector.file.find("-1000000-65536.L9") == std::string::npos) continue;
    Bytes& plain = samples.emplace_back(vector.plain_size);
    EXPECT_TRUE(gdeflate::decode_page(vector.page, plain)) << vector.file;
  }
  EXPECT_EQ(samples.size(), 7u);
  return samples;
}

}  // namespace nacre::engine
