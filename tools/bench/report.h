// SPDX-License-Identifier: Apache-2.0
// The report: a table on standard output that grows as figures come in, and JSON at the end
// (nacre-bench(1)).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu_engine/base/result.h"
#include "gpu_engine/engine.h"
#include "tools/bench/data.h"
#include "tools/bench/measure.h"

namespace nacre::tools {

// The processor's name by the kernel, or "unknown".
std::string processor_name();

enum class BenchUnit { bytes, operations };

struct BenchRow {
  std::string family;     // "codecs"
  std::string operation;  // "lz77 encode"
  std::size_t chunk_size_bytes = 0;
  unsigned thread_count = 0;
  std::uint64_t payload_size_bytes = 0;  // 0: all the data
  std::string by;                        // "cpu", "cuda", "auto", "liblz4 1.9.4"
  bool is_library = false;               // the others are compared with it
  std::string note;                      // for a library: how its task differs
  std::string missing;  // for a library that is not built in: the package to install
  BenchUnit unit = BenchUnit::bytes;
  std::optional<Rate> rate;               // none if it is missing
  std::optional<double> ratio;            // plain bytes / stored bytes, of all chunks
  std::optional<double> against_library;  // how many times as fast as the first library
  std::optional<double> against_better;   // for auto: as the faster one of cpu and cuda
};

struct BenchSetting {
  std::vector<std::string> engines;  // as the backends call themselves
  double seconds = 0;                // for each operation
  unsigned repeated = 1;             // how often the data is repeated
  std::optional<engine::DeviceCeilings> ceilings = {};
};

class BenchReport {
 public:
  // with_table: prints a table.
  BenchReport(const BenchData& data, BenchSetting setting, bool with_table);
  // Rows of one operation, size and thread count.
  void add(std::vector<BenchRow> rows);
  // Adds one more row to what was added last.
  void add_to_last(BenchRow row);
  // Everything as JSON, with a newline.
  std::string json() const;

 private:
  void print_head() const;
  void print_row(const BenchRow& row, bool is_first);

  const BenchData& data_;
  const BenchSetting setting_;
  const bool with_table_;
  std::string family_;  // of the last row printed
  std::vector<BenchRow> rows_;
};

}  // namespace nacre::tools
