// SPDX-License-Identifier: Apache-2.0
// The stream of a checkpoint's rows. docs/FORMAT.md, "Checkpoint".
//
//   stream:   section… 0 u8
//   section:  number u8 | row… | 0 v | 0 v
//   row:      shared v | rest size v (> 0) | rest | value size v | value
//
// Keys of a section ascend. shared counts the first bytes that a key has in common with the key
// before it. Sections ascend as well, and all seven are there.
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
  // The caller adds sections in their order, and the rows of each in their order.
  void begin_section(CheckpointSection section);
  void add_row(std::string_view key, std::string_view value);
  void end_section();
  void end_stream();

  // Returns the next part. Before end_stream() only full parts are returned, after it the rest too.
  // Empty if there is none yet. Valid until the next call.
  ByteView next_part();

 private:
  void number(std::uint64_t value);

  std::string bytes_;
  std::size_t taken_ = 0;  // how much of bytes_ next_part() has returned
  std::string last_key_;
  bool is_ended_ = false;
};

// Returns the bytes of one part, verified and opened.
using ReadPart = std::function<Result<Bytes>(std::size_t part)>;
// Called for each row in order.
using VisitRow = std::function<Result<>(CheckpointSection section, std::string_view key,
                                        std::string_view value)>;

// Holds one part and one row in memory. Errors: those of read_part and visit; corrupt if the stream
// is malformed or not what root says.
Result<> read_checkpoint(const CheckpointRoot& root, const ReadPart& read_part,
                         const VisitRow& visit);

}  // namespace nacre::metadata
