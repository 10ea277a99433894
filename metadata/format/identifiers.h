// SPDX-License-Identifier: Apache-2.0
// Distinct types for the numbers of inodes, chunks, segments and records in a volume.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace nacre::metadata {

// Never reused within a volume. 1 is the root directory; 0 is none.
struct InodeNumber {
  std::uint64_t value = 0;
  auto operator<=>(const InodeNumber&) const = default;
};
// The place of a chunk in its file, from 0.
struct ChunkIndex {
  std::uint64_t value = 0;
  auto operator<=>(const ChunkIndex&) const = default;
};
// Never reused within a volume; 0 is none.
struct SegmentNumber {
  std::uint64_t value = 0;
  auto operator<=>(const SegmentNumber&) const = default;
};
// Distinguishes every sealed record of a volume from every other, for ever. The upper 24 bits are
// the ordinal of the write session, the others the record's place in it. Versions only grow. A row
// names the version, and the record's identity carries it, so an older record can never stand in
// for a newer one.
struct RecordVersion {
  std::uint64_t value = 0;
  auto operator<=>(const RecordVersion&) const = default;
};
inline constexpr unsigned record_version_session_shift = 40;

inline constexpr InodeNumber root_inode{1};

}  // namespace nacre::metadata

template <>
struct std::hash<nacre::metadata::InodeNumber> {
  std::size_t operator()(nacre::metadata::InodeNumber n) const noexcept {
    return static_cast<std::size_t>(n.value * 0x9E3779B97F4A7C15ull);
  }
};
