// SPDX-License-Identifier: Apache-2.0
// Runs one operation at one size and thread count. It builds the contenders, runs each once (to
// warm up, and to look at the outputs), measures them and reports their rows.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/contender.h"
#include "tools/bench/data.h"
#include "tools/bench/judge.h"
#include "tools/bench/report.h"

namespace nacre::tools {

struct BenchOptions {
  std::vector<std::string> families;
  std::string path;
  std::string engine = "auto";
  std::vector<unsigned> thread_counts;
  std::vector<std::size_t> chunk_sizes;
  std::vector<std::uint64_t> payload_sizes;  // empty: one payload of all the data
  std::vector<std::string> only;             // names of codecs, ciphers and checksums; empty: all
  unsigned repeat = 1;  // how often the data, or the numbers of rsa, are repeated
  double seconds = 1;
  std::uint64_t sample_size_max = 8u << 20;
};

// The engines that are measured, made when first needed.
class BenchEngines {
 public:
  struct Named {
    std::string label;  // "cpu", "cuda", "auto"
    engine::Engine* engine;
  };
  // Error: unsupported, with what to do, if the choice names a backend that is missing.
  static Result<BenchEngines> open(const std::string& choice);
  Result<std::vector<Named>> with_threads(unsigned thread_count);
  std::vector<std::string> descriptions();
  std::optional<engine::DeviceCeilings> ceilings();  // of a device, if there is one

 private:
  using Key = std::pair<engine::EngineChoice, unsigned>;
  std::vector<engine::EngineChoice> choices_;
  std::map<Key, std::unique_ptr<engine::Engine>> engines_;
};

// State that all families share.
struct Bench {
  const BenchOptions& options;
  const BenchData& data;
  BenchEngines& engines;
  BenchReport& report;
  // True if the data is a payload of a given size: engines are measured with all of it, libraries
  // are not.
  bool is_payload = false;

  // Whether a codec, a cipher or a checksum of this name is to be measured.
  bool wants(std::string_view name) const {
    return options.only.empty() ||
           std::find(options.only.begin(), options.only.end(), name) != options.only.end();
  }
};

struct BenchGroup {
  std::string family, operation;
  std::size_t chunk_size_bytes = 0;
  unsigned thread_count = 1;
  BenchUnit unit = BenchUnit::bytes;
  BenchTask task;
  // For each message: what it counts in units, and its output's size or bound.
  std::vector<double> weights;
  std::vector<std::size_t> output_sizes;
  // For libraries, which may need more room for their outputs; empty: the same.
  std::vector<std::size_t> library_output_sizes;
  // Plain bytes, whose ratio to the outputs is reported; 0: no ratio.
  double plain_bytes = 0;
  // Whether outputs are compared afterwards.
  bool keeps_outputs = true;
  // What all outputs must be. If it is empty, that is not known before; then what they must be once
  // they are undone. A library's outputs are undone by the library of the same name.
  std::vector<ByteView> expected;
  std::optional<BenchUndo> undo;
};

// The contenders of a group after it was measured; their outputs may be the next group's inputs.
// The place of a library that is not built in is empty.
struct BenchOutcome {
  std::vector<std::unique_ptr<Contender>> contenders;  // engines first
  // The outputs of a contender, as views.
  std::vector<ByteView> outputs_of(std::size_t contender, std::size_t message_count) const;
};

// inputs: one list for all contenders, or one for each (such as an earlier group's outputs).
Result<BenchOutcome> run_group(Bench& bench, const BenchGroup& group,
                               const std::vector<std::vector<ByteView>>& inputs);

}  // namespace nacre::tools
