// SPDX-License-Identifier: Apache-2.0
// Checksums, and what a copy of the same bytes costs.
#include "tools/bench/families.h"

namespace nacre::tools {

Result<> bench_checksums(Bench& bench) {
  for (const auto checksum : {engine::Checksum::crc32, engine::Checksum::crc32c}) {
    if (!bench.wants(checksum == engine::Checksum::crc32 ? "crc32" : "crc32c")) continue;
    for (const std::size_t chunk_size : bench.options.chunk_sizes) {
      const std::vector<ByteView> chunks = cut_into_chunks(bench.data, chunk_size);
      for (const unsigned thread_count : bench.options.thread_counts) {
        BenchGroup group{.family = "checksum",
                         .operation = checksum == engine::Checksum::crc32 ? "crc32" : "crc32c",
                         .chunk_size_bytes = chunk_size,
                         .thread_count = thread_count,
                         .task = {}};
        group.task.message.operation = engine::Operation::checksum;
        group.task.message.checksum = checksum;
        for (const ByteView chunk : chunks) {
          group.weights.push_back(static_cast<double>(chunk.size()));
          group.output_sizes.push_back(0);
          group.library_output_sizes.push_back(
              engine::baseline_output_size_bound({}, chunk.size()));
        }
        group.keeps_outputs = false;
        NACRE_TRY(run_group(bench, group, {chunks}));
      }
    }
  }
  return {};
}

}  // namespace nacre::tools
