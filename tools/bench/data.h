// SPDX-License-Identifier: Apache-2.0
// The bytes that are measured on: those of a file or a folder, or generated text.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools {

struct BenchData {
  Bytes bytes;
  std::vector<std::size_t> file_ends;  // within bytes
  std::string source;                  // the path; empty: generated
  std::uint64_t total_bytes = 0;       // bytes holds all of them, or an evenly spread sample
};

// The regular files of path, in the order of their names. If there are more than size_max bytes,
// every n-th stretch of 1 MiB is used. Errors: not_found, permission, io; invalid_argument if there
// is no byte.
Result<BenchData> load_bench_data(const std::string& path, std::uint64_t size_max);

// Words of a vocabulary, by Zipf's law, in sentences: deterministic, and about as compressible as
// English text.
BenchData generate_bench_data(std::uint64_t size);

// The same bytes, count times: a device needs many to be busy. count is at least 1.
void repeat_bench_data(BenchData& data, unsigned count);

// One stretch of this many bytes, which repeats the data.
BenchData make_payload_data(const BenchData& data, std::uint64_t size);

// Cuts the data into chunks; none crosses a file's end.
std::vector<ByteView> cut_into_chunks(const BenchData& data, std::size_t chunk_size);

}  // namespace nacre::tools
