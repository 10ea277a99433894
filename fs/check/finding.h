// SPDX-License-Identifier: Apache-2.0
// A finding of a check: one thing that is wrong, and a verdict that says of which kind it is. The
// kinds stay distinct up to the message that the user reads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/format/identifiers.h"

namespace nacre::fs {

enum class Verdict : std::uint8_t {
  structure,    // rows contradict each other
  rot,          // a CRC or a format is wrong: a damaged medium
  tampered,     // a tag or an identity is wrong: the bytes were changed on purpose
  missing,      // a file or record that a row names does not exist
  rolled_back,  // it is older than another part of the volume requires
  unreadable,   // the operating system returned an error
};
std::string_view to_string(Verdict verdict);
Verdict verdict_of(ErrorCode code);

enum class Severity : std::uint8_t {
  note,   // no damage: worth knowing
  error,  // damage
};
std::string_view to_string(Severity severity);

struct Finding {
  Severity severity = Severity::error;
  Verdict verdict = Verdict::structure;
  std::string what;                            // one sentence
  std::string file;                            // path within the volume's folder; may be empty
  std::optional<std::uint64_t> offset;         // within that file
  std::optional<metadata::InodeNumber> inode;  // the inode whose data or row is damaged
  std::vector<std::string> paths;              // of that inode, in the mounted volume
};

// Collects findings. Past the bound they are only counted. Not thread-safe.
class FindingList {
 public:
  static constexpr std::size_t kept_count_max = 20000;

  void add(Finding finding);
  // Adds a finding with the message and the verdict of an error.
  void add_error(const Error& error, std::string file = {},
                 std::optional<std::uint64_t> offset = {}, Severity severity = Severity::error);

  const std::vector<Finding>& findings() const { return findings_; }
  std::vector<Finding>& findings() { return findings_; }
  std::uint64_t error_count() const { return error_count_; }
  // The number of findings that were only counted.
  std::uint64_t dropped_count() const { return dropped_count_; }

 private:
  std::vector<Finding> findings_;
  std::uint64_t error_count_ = 0;
  std::uint64_t dropped_count_ = 0;
};

// The progress of a long job, and the unit in which it is counted.
enum class ProgressUnit : std::uint8_t { bytes, rows };
struct Progress {
  std::string_view stage;
  ProgressUnit unit = ProgressUnit::bytes;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0 while it is not known
};
using ProgressFunction = std::function<void(const Progress&)>;

}  // namespace nacre::fs
