// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu_engine/corpus.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/support/source_folder.h"

namespace nacre::engine {
namespace {

constexpr std::size_t chunk_size = 65536;

// The content of a zip archive's first file: its local header (30 bytes, name, extra field), then
// raw deflate up to its own end.
Bytes unzip_first(const Bytes& archive) {
  if (archive.size() < 30) return {};
  const std::size_t start = 30u + load_le<std::uint16_t>(archive.data() + 26) +
                            load_le<std::uint16_t>(archive.data() + 28);
  EXPECT_EQ(load_le<std::uint16_t>(archive.data() + 8), Z_DEFLATED);
  if (start >= archive.size()) return {};
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, -MAX_WBITS), Z_OK);
  stream.next_in = const_cast<Byte*>(archive.data() + start);
  stream.avail_in = static_cast<uInt>(archive.size() - start);
  Bytes plain;
  int outcome = Z_OK;
  while (outcome == Z_OK) {
    const std::size_t at = plain.size();
    plain.resize(at + (1u << 20));
    stream.next_out = plain.data() + at;
    stream.avail_out = 1u << 20;
    outcome = inflate(&stream, Z_NO_FLUSH);
    plain.resize(plain.size() - stream.avail_out);
  }
  EXPECT_EQ(outcome, Z_STREAM_END);
  inflateEnd(&stream);
  return plain;
}

}  // namespace

std::vector<CorpusFile> read_corpus(std::size_t stride, const std::string& for_what) {
  const char* const named = std::getenv("NACRE_CORPUS");
  const std::string folder =
      named != nullptr ? std::string(named) + "/" : tests::source_folder() + "/../shared/corpus/";
  std::vector<CorpusFile> corpus;
  for (const char* const name : {"dickens", "mr", "nci", "ooffice", "osdb", "reymont", "xml"}) {
    const auto read = [&](const char* suffix) {
      std::ifstream file(folder + name + suffix, std::ios::binary);
      return Bytes(std::istreambuf_iterator<char>(file), {});
    };
    Bytes plain = unzip_first(read(".zip"));
    if (plain.empty()) plain = read("");
    if (plain.empty()) {
      EXPECT_EQ(named, nullptr) << "NACRE_CORPUS has no " << name;
      std::printf("skipped: %s: there is no %s%s.zip\n", for_what.c_str(), folder.c_str(), name);
      return {};
    }
    Bytes kept;
    for (std::size_t at = 0; at < plain.size(); at += stride * chunk_size)
      kept.insert(
          kept.end(), plain.begin() + static_cast<std::ptrdiff_t>(at),
          plain.begin() + static_cast<std::ptrdiff_t>(std::min(at + chunk_size, plain.size())));
    corpus.push_back({name, std::move(kept)});
  }
  return corpus;
}

}  // namespace nacre::engine
