// SPDX-License-Identifier: Apache-2.0
// The stream of a checkpoint's rows. docs/FORMAT.md, "Checkpoint".
//
//   stream:   section… 0 u8
//   section:  number u8 | row… | 0 v | 0 v
//   row:      shared v | rest size v (> 0) | rest | value size v | value
//
// Keys of a section ascend; shared counts the first bytes that a key has in common with the one
// before it. Sections ascend as well; all seven are there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "metadata/format/checkpoint.h"

namespace nacre::metadata {

inline constexpr std::size_t checkpoint_key_size_bytes_max = 1024;
inline constexpr std::size_t checkpoint_value_size_bytes_max = 4u << 20;

// Not thread-safe.
class CheckpointWriter {
 public:
  // Sections in their order, rows in theirs.
  void begin_section(CheckpointSection section);
  void add_row(std::string_view key, std::string_view value);
  void end_section();
  void end_stream();

  // The next part: full ones as long as there are any; behind end_stream() the rest too. Empty:
  // none yet. Valid until the next call.
  ByteView next_part();

 private:
  void number(std::uint64_t value);

  std::string bytes_;
  std::size_t taken_ = 0;  // of bytes_, by next_part()
  std::string last_key_;
  bool is_ended_ = false;
};

// The bytes of part i, checked and opened.
using ReadPart = std::function<Result<Bytes>(std::size_t part)>;
// Called for each row in order.
using VisitRow = std::function<Result<>(CheckpointSection section, std::string_view key,
                                        std::string_view value)>;

// Errors: read_part's and visit's; corrupt where the stream is not what root says or malformed.
// Holds a part and a row in memory.
Result<> read_checkpoint(const CheckpointRoot& root, const ReadPart& read_part,
                         const VisitRow& visit);

}  // namespace nacre::metadata
