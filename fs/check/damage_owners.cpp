// SPDX-License-Identifier: Apache-2.0
#include "fs/check/damage_owners.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "fs/check/path_finder.h"
#include "fs/check/record_index.h"

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::RecordKind;

namespace {

// At most this many files are kept for one stretch. A stretch has room for few records, but damaged
// rows may name more.
constexpr std::size_t inode_count_max = 4096;

// The stretches of each segment, in the order of offsets. They do not overlap.
class Places {
 public:
  explicit Places(std::span<DamagedStretch> stretches)
      : inodes_(stretches.size()), holds_checkpoint_(stretches.size()) {
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const auto& stretch = stretches[i];
      by_segment_[stretch.segment].emplace(stretch.offset, Place{stretch.size, i});
    }
  }
  void add(const NamedRecord& record) {
    const auto segment = by_segment_.find(record.location.segment);
    if (segment == by_segment_.end()) return;
    const auto& places = segment->second;
    const std::uint64_t end = record.location.offset + record.location.stored_size;
    // A record touches the last stretch that begins before it, and all that begin within it.
    auto place = places.upper_bound(record.location.offset);
    if (place != places.begin()) --place;
    for (; place != places.end() && place->first < end; ++place) {
      const auto& [size, index] = place->second;
      // The size may be as large as 2^64 - 1, so the sum of offset and size could overflow.
      if (place->first <= record.location.offset && size <= record.location.offset - place->first) {
        continue;
      }
      if (record.name.kind != RecordKind::chunk && record.name.kind != RecordKind::patch) {
        holds_checkpoint_[index] = true;
        continue;
      }
      auto& inodes = inodes_[index];
      if (inodes.size() < inode_count_max) inodes.insert(record.name.inode);
    }
  }
  const std::vector<std::set<InodeNumber>>& inodes() const { return inodes_; }
  bool holds_checkpoint(std::size_t index) const { return holds_checkpoint_[index]; }

 private:
  struct Place {
    std::uint64_t size;
    std::size_t index;
  };
  std::map<metadata::SegmentNumber, std::map<std::uint64_t, Place>> by_segment_;
  std::vector<std::set<InodeNumber>> inodes_;
  std::vector<bool> holds_checkpoint_;
};

std::string clipped(std::string path) {
  constexpr std::size_t size_max = metadata::scrub_text_size_bytes_max - 4;
  if (path.size() > size_max) path.replace(size_max, std::string::npos, "…");
  return path;
}

}  // namespace

Result<> find_owners(const metadata::Database& database, std::span<DamagedStretch> stretches) {
  if (stretches.empty()) return {};
  Places places(stretches);
  NACRE_TRY(scan_records(database, [&](const NamedRecord& record) { places.add(record); }));
  std::set<InodeNumber> all;
  for (const auto& inodes : places.inodes())
    all.insert(inodes.begin(), inodes.end());
  NACRE_ASSIGN(const auto paths, find_paths(database, all, metadata::scrub_path_count_max));
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    auto& found = stretches[i].paths;
    if (places.holds_checkpoint(i)) found.emplace_back("(a checkpoint of the tables)");
    for (const InodeNumber inode : places.inodes()[i]) {
      const auto named = paths.find(inode);
      std::vector<std::string> names;
      if (named != paths.end()) names = named->second;
      if (names.empty()) {
        names.push_back(fmt::format("(inode {}, which no name leads to)", inode.value));
      }
      for (auto& name : names) {
        if (found.size() + 1 < metadata::scrub_path_count_max) {
          found.push_back(clipped(std::move(name)));
        } else {
          ++stretches[i].more_path_count;
        }
      }
    }
  }
  return {};
}

std::string words_for_more_paths(std::uint64_t count) {
  return fmt::format("(and at least {} more)", count);
}

}  // namespace nacre::fs
