// SPDX-License-Identifier: Apache-2.0
// The row "scrub" of the table system. It has the progress of a mounted volume's scrub, so that the
// scrub continues after a restart, and what this scrub, or the last one, found. docs/FORMAT.md,
// "Tables".
//
//   value: 1 | state u8 | rate v | started s | ended s | last segment v | segment v | offset v |
//          total bytes v | segments v | records v | segment bytes v | db files v | db bytes v |
//          previous ended s | previous damages v | damages v | text error |
//          places: count v (<= 256) | place…
//   place: verdict u8 (<= 5) | owner u8 (0 not known, 1 no file, 2 files) | text file | offset v |
//          size v | text what | paths: count v (<= 64) | text…
//   text:  size v | bytes
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/format/identifiers.h"

namespace nacre::metadata {

inline constexpr std::string_view system_key_scrub = "scrub";
inline constexpr std::size_t scrub_place_count_max = 256;
inline constexpr std::size_t scrub_path_count_max = 64;  // of one place
inline constexpr std::size_t scrub_text_size_bytes_max = 4096;
// Bounds that a writer keeps to, so that the row fits one reply of the control socket, however the
// texts are escaped there. They are for the words of one place or error, and for all paths together
// (not counting the words which say that some paths were left out).
inline constexpr std::size_t scrub_words_size_bytes_max = 200;
inline constexpr std::size_t scrub_paths_size_bytes_max = 16u << 10;

enum class ScrubState : std::uint8_t {
  none,      // there never was one
  running,   // a mount continues it
  paused,    // a mount continues it once it is resumed
  finished,  // it has read everything
  stopped,   // it was given up
};
std::string_view to_string(ScrubState state);

enum class DamageOwner : std::uint8_t { unknown, nobody, files };

// A damaged stretch of a file.
struct ScrubPlace {
  std::uint8_t verdict = 0;  // fs::Verdict
  DamageOwner owner = DamageOwner::unknown;
  std::string file;  // within the volume directory
  std::uint64_t offset = 0;
  std::uint64_t size = 0;          // 0: the whole file
  std::string what;                // one sentence
  std::vector<std::string> paths;  // of the damaged files, in the mounted volume
  bool operator==(const ScrubPlace&) const = default;
};

struct ScrubRow {
  ScrubState state = ScrubState::none;
  std::uint64_t rate_bytes_per_second = 0;  // 0: no limit
  std::int64_t started_seconds = 0;         // since 1970
  std::int64_t ended_seconds = 0;           // 0 while it is under way
  SegmentNumber last_segment;               // the newest when it began: later ones are left out
  SegmentNumber segment;                    // where it is; past last_segment: in db/
  std::uint64_t offset = 0;                 // how much of that segment is done
  std::uint64_t total_bytes = 0;            // of segments and db/, when it began
  std::uint64_t segment_count = 0;          // these five: verified so far
  std::uint64_t record_count = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t database_file_count = 0;
  std::uint64_t database_bytes = 0;
  std::int64_t previous_ended_seconds = 0;  // of the last one that finished before; 0: none
  std::uint64_t previous_damage_count = 0;
  std::uint64_t damage_count = 0;  // places, also those past the bound
  std::string error;               // why it stopped by itself; else empty
  std::vector<ScrubPlace> places;  // at most scrub_place_count_max
  bool operator==(const ScrubRow&) const = default;
};

// Texts must be within their bounds.
std::string encode(const ScrubRow& row);
Result<ScrubRow> decode_scrub_row(std::string_view value);

}  // namespace nacre::metadata
