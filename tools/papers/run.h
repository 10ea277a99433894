// SPDX-License-Identifier: Apache-2.0
// Measures one row of the papers' tables: the same messages by the papers' plain code, by the best
// library on one and on all threads, and by the engine on a device; forward (encrypt, compress,
// checksum) and back. All outputs are compared. A wrong byte is an error, and gets no figure.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/data.h"
#include "tools/bench/group.h"
#include "tools/papers/engine_work.h"
#include "tools/papers/render.h"

namespace nacre::tools {

struct SeedOptions {
  std::vector<std::string> papers;  // "000"; empty: all
  double seconds = 0.1;             // about this long for each figure
  std::uint64_t size_max = 0;       // inputs larger than this are left out
};

// Seconds for all messages.
struct SeedPairTimes {
  SeedTimes forward, back;
};

// An operation on messages, and the one that undoes it.
struct SeedPair {
  std::vector<ByteView> plain;
  BenchTask forward;
  std::optional<BenchTask> back;
  // The largest output for an input of forward, by the engine; others may need more.
  std::function<std::size_t(std::size_t)> output_bound;
  std::size_t library_room = 0;  // this much more for them
  std::function<engine::BaselineLibrary(const BenchTask&)> plain_code = {};
  bool plain_on_all_threads = false;
  // All contenders give the same outputs.
  bool same_bytes = true;
};

class SeedRun {
 public:
  // cuda: nullptr if there is no device.
  SeedRun(const SeedOptions& options, unsigned thread_count, engine::Engine& cpu,
          engine::Engine* cuda, const BenchData& data);

  const SeedOptions& options() const { return options_; }
  unsigned thread_count() const { return thread_count_; }
  engine::Engine& cpu() const { return cpu_; }
  engine::Engine* cuda() const { return cuda_; }
  // Whether rows with this many bytes are measured.
  bool takes(std::uint64_t size) const { return size <= options_.size_max; }
  // This many bytes, at most size_max, which repeat the data. Valid as long as this.
  ByteView bytes(std::size_t size) const { return ByteView(bytes_).first(size); }
  // The same in messages of a size; the last one holds the rest.
  std::vector<ByteView> messages(std::size_t size, std::size_t message_size) const;

  // Errors: invalid_argument for no message; io if something computes wrong bytes.
  Result<SeedPairTimes> time_pair(const SeedPair& pair) const;

  // The median of several runs, which together take about the time for a figure.
  Result<double> time_of(const std::function<Result<>()>& work) const;
  // The same for several payloads that are to be compared, without a look at results. A round runs
  // all of them once, there and then back, so that changes of the machine hit all alike.
  Result<std::vector<double>> time_in_turns(
      const std::vector<std::unique_ptr<EngineWork>>& works) const;
  // The time of a payload on the device with copies, without a look at its results; nothing if the
  // device did not do all of it.
  Result<std::optional<double>> time_on_device(EngineWork& work) const;
  // The time of its kernels alone; nothing if they cannot be measured.
  std::optional<double> time_kernels(EngineWork& work) const;
  // How often a device's kernel is repeated.
  unsigned repetitions() const;

 private:
  // once: does it, and returns the seconds that count.
  Result<double> median_time(const std::function<Result<double>()>& once) const;

  const SeedOptions options_;
  const unsigned thread_count_;
  engine::Engine& cpu_;
  engine::Engine* const cuda_;
  Bytes bytes_;
};

// The libraries of this build that do a task; a copy of the bytes does not count. They refer to the
// task's key.
std::vector<engine::BaselineLibrary> libraries_for(const BenchTask& task);

// The tables of each paper, in its order.
Result<> run_paper_000(SeedRun& run, std::vector<SeedTable>& tables);
Result<> run_paper_001(SeedRun& run, std::vector<SeedTable>& tables);
Result<> run_paper_002(SeedRun& run, std::vector<SeedTable>& tables);
Result<> run_paper_003(SeedRun& run, std::vector<SeedTable>& tables);

}  // namespace nacre::tools
