// SPDX-License-Identifier: Apache-2.0
// Makes up what is done to the files, one operation after the other. The same seed and options give
// the same history.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "tests/mount/exerciser/operation.h"

namespace nacre::tests {

struct HistoryOptions {
  std::uint64_t seed = 1;
  std::uint32_t file_count = 1;
  std::uint64_t file_size_max = 600'000;
  std::uint64_t operation_size_max = 128'000;
  std::uint64_t read_boundary = 1, write_boundary = 1, truncate_boundary = 1;
  // A read or write takes any of these; with more than one, mapped ones, too, unless left out.
  std::vector<Channel> channels = {Channel::plain};
  bool has_mapped_reads = true, has_mapped_writes = true;
  // An O_DIRECT read by AIO or io_uring comes after an fdatasync of the file.
  bool syncs_first = false;
  // One operation in this many closes and reopens the file; 0: none does.
  std::uint64_t one_reopen_in = 0;
  std::uint64_t one_check_in = 500;
  std::uint64_t one_upkeep_in = 0;
};

// Random draws that are the same with every standard library.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : engine_() % end; }
  std::uint64_t between(std::uint64_t first, std::uint64_t last) {
    return first + below(last - first + 1);
  }
  bool one_in(std::uint64_t count) { return count != 0 && below(count) == 0; }

 private:
  std::mt19937_64 engine_;
};

// Reads, writes, cuts, allocates, punches and copies at random, as fsx does; but ranges come again,
// and some have round numbers.
class RandomHistory {
 public:
  explicit RandomHistory(HistoryOptions options);
  // size_of tells how large a file is by now.
  Operation next(const std::function<std::uint64_t(std::size_t)>& size_of);

 private:
  struct Range {
    std::uint64_t offset = 0, size = 0;
  };

  Kind draw_kind();
  Range draw_range(std::uint64_t end_max, std::uint64_t boundary);
  void draw_transfer(Operation& operation);
  Operation draw(const std::function<std::uint64_t(std::size_t)>& size_of);

  HistoryOptions options_;
  Chance chance_;
  std::optional<Operation> held_;  // comes next
  std::array<Range, 16> recent_{};
  std::uint64_t drawn_range_count_ = 0;
  std::uint64_t stamp_ = 0;
};

// A program's state: small files of constant size, rewritten in place again and again, synced and
// read back; then the file system is left to its upkeep, and they are read. How many files, which
// sizes and places, how often synced: drawn from the seed.
History state_history(const HistoryOptions& options, std::uint64_t operation_count);

}  // namespace nacre::tests
