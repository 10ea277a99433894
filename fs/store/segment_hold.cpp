// SPDX-License-Identifier: Apache-2.0
// Segments that are held for a backup, and segments that a backup brings.
#include <map>
#include <set>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "gpu_engine/base/check.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

using metadata::OpenMode;
using metadata::SegmentNumber;
using metadata::Table;

namespace {

class Hold {
 public:
  Hold() = default;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    for (const SharedSegment& segment : segments_) {
      const std::uint32_t before = segment->hold_count.fetch_sub(1);
      NACRE_CHECK(before > 0, "segment {} is released twice", segment->number.value);
    }
  }
  void add(SharedSegment segment) {
    ++segment->hold_count;
    segments_.push_back(std::move(segment));
  }

 private:
  std::vector<SharedSegment> segments_;
};

// Whether the file is of the row's session and at least as long as the row says.
Result<bool> fits_row(metadata::BackingDirectory& directory, const std::string& path,
                      SegmentNumber number, const metadata::SegmentRow& row) {
  const auto file = directory.open(path, OpenMode::read);
  if (!file &&
      (file.error().code == ErrorCode::not_found || file.error().code == ErrorCode::corrupt))
    return false;  // corrupt: no regular file
  if (!file) return tl::unexpected(file.error());
  NACRE_ASSIGN(const std::uint64_t size, (*file)->size());
  const auto header = read_segment_header(**file, std::nullopt, number);
  return header && header->salt == row.salt && size >= row.committed_size;
}

}  // namespace

std::string arriving_segment_path(SegmentNumber number) {
  return segment_path(number) + ".new";
}

Result<std::string> find_segment(metadata::BackingDirectory& directory, SegmentNumber number,
                                 const metadata::SegmentRow& row) {
  const std::string arriving = arriving_segment_path(number);
  NACRE_ASSIGN(const bool is_there, directory.exists(arriving));
  if (!is_there) return segment_path(number);
  NACRE_ASSIGN(const bool has_arrived, fits_row(directory, arriving, number, row));
  if (!has_arrived) return segment_path(number);
  NACRE_ASSIGN(const bool was_there, fits_row(directory, segment_path(number), number, row));
  return was_there ? segment_path(number) : arriving;
}

// Takes segments that an interrupted backup brought and that the database names: they are part of
// the volume now.
Result<> SegmentTable::take_arriving(bool read_only) {
  NACRE_ASSIGN(const auto names, directory_->list(metadata::segment_folder));
  std::set<std::string> arriving;
  for (const std::string& name : names) {
    if (name.ends_with(arriving_suffix) || name.ends_with(unfinished_suffix)) arriving.insert(name);
  }
  if (arriving.empty()) return {};
  std::map<SegmentNumber, metadata::SegmentRow> wanted;
  NACRE_TRY(
      database_.scan(Table::segments, "", "", [&](std::string_view key, std::string_view value) {
        const auto number = metadata::decode_segment_key(key);
        const auto row = metadata::decode_segment_row(value);
        if (number && row) wanted.emplace(*number, *row);  // recover() reports the others
        return true;
      }));
  for (const auto& [number, row] : wanted) {
    const std::string path = segment_path(number);
    NACRE_ASSIGN(const std::string found, find_segment(*directory_, number, row));
    if (found == path) continue;
    if (read_only) {
      arriving_.insert(number);
      continue;
    }
    spdlog::info("{}: taken from a backup that was interrupted", path);
    NACRE_TRY(directory_->rename(found, path));
    arriving.erase(found.substr(metadata::segment_folder.size() + 1));
    folder_unsynced_ = true;
  }
  if (read_only) return {};
  for (const std::string& name : arriving) {
    NACRE_TRY(directory_->remove(fmt::format("{}/{}", metadata::segment_folder, name)));
    folder_unsynced_ = true;
  }
  return {};
}

Result<SegmentHold> SegmentTable::hold_committed() {
  SegmentHold held;
  const auto hold = std::make_shared<Hold>();
  Result<> bad;
  NACRE_TRY(
      database_.scan(Table::segments, "", "", [&](std::string_view key, std::string_view value) {
        const auto number = metadata::decode_segment_key(key);
        const auto row = metadata::decode_segment_row(value);
        auto segment = number ? find(*number) : tl::unexpected(number.error());
        if (!segment || !row) {
          bad = tl::unexpected(segment ? row.error() : segment.error());
          return false;
        }
        hold->add(std::move(*segment));
        held.files.push_back({.path = segment_path(*number), .size = row->committed_size});
        return true;
      }));
  NACRE_TRY(bad);
  held.hold = hold;
  return held;
}

}  // namespace nacre::fs
