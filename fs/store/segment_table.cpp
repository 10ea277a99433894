// SPDX-License-Identifier: Apache-2.0
// Segment files: recovery, creation, live counts, removal.
#include "fs/store/segment_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/store/segment_store.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::OpenMode;
using metadata::SegmentNumber;
using metadata::Table;

namespace {

constexpr std::string_view folder = "segments";
// Fewer segments than this are made between two commits.
constexpr std::uint64_t uncommitted_segment_count_max = 1u << 20;

std::uint64_t live_bytes_of(const Segment& segment) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(segment.live_bytes, 0));
}

// The share of live bytes among the segment's records. An empty file has no dead ones.
double live_share_of(const Segment& segment) {
  const std::uint64_t size = segment.size;
  if (size <= metadata::segment_header_size_bytes) return 1;
  return static_cast<double>(live_bytes_of(segment)) /
         static_cast<double>(size - metadata::segment_header_size_bytes);
}

// Compaction could not empty the segment, and nothing in it has died since then.
bool was_tried_in_vain(const Segment& segment) {
  return segment.live_bytes == segment.live_bytes_left;
}

// A row that names a record may be committed only after the record is on the medium.
void check_synced(SegmentNumber number, std::uint64_t staged, std::uint64_t synced) {
  NACRE_CHECK(synced >= staged, "segment {}: {} bytes are about to be committed, {} are synced",
              number.value, staged, synced);
}

// A segment that is in use is not free to move: records in it may be about to get their rows.
bool is_free_to_move(const SharedSegment& segment) {
  return !segment->open_for_append && !segment->immovable && segment.use_count() == 1 &&
         segment->live_bytes > 0 && !was_tried_in_vain(*segment);
}

Result<std::uint64_t> system_number(const metadata::Database& database, std::string_view key) {
  NACRE_ASSIGN(auto value, database.get(Table::system, key));
  if (!value) return fail(ErrorCode::corrupt, fmt::format("the database has no row '{}'", key));
  return metadata::decode_u64(*value);
}

// Whether to go on with a segment that is not whole. A read-only volume serves the rest, and reads
// of the missing part fail. A writer would only add to what must be repaired first.
Result<> serve_the_rest(Result<> recovered, bool read_only) {
  if (recovered || recovered.error().code != ErrorCode::missing) return recovered;
  constexpr std::string_view advice = "fsck.nacre --deep names the files that are hit";
  if (!read_only) {
    return fail(ErrorCode::missing, fmt::format("{}; {}, mounting with -o ro serves all others",
                                                recovered.error().message, advice));
  }
  spdlog::warn("{}; what was in it cannot be read, {}", recovered.error().message, advice);
  return {};
}

}  // namespace

std::string segment_path(SegmentNumber number) {
  return fmt::format("{}/{:012}.seg", folder, number.value);
}

Result<> SegmentTable::recover(const engine::VolumeId& volume_id, bool read_only) {
  NACRE_TRY(take_arriving(read_only));
  LockGuard lock(mutex_);
  NACRE_ASSIGN(next_number_, system_number(database_, metadata::system_key_next_segment));
  staged_next_number_ = next_number_;
  std::map<std::string, std::pair<SharedSegment, std::uint64_t>> known;  // with committed size
  Result<> bad;
  NACRE_TRY(
      database_.scan(Table::segments, "", "", [&](std::string_view key, std::string_view value) {
        const auto number = metadata::decode_segment_key(key);
        const auto row = metadata::decode_segment_row(value);
        if (!number || !row) {
          bad = tl::unexpected(number ? row.error() : number.error());
          return false;
        }
        auto segment = std::make_shared<Segment>();
        segment->number = *number;
        segment->epoch = row->epoch;
        segment->salt = row->salt;
        segment->size = segment->written_size = row->committed_size;
        segment->staged_size_ = segment->synced_size_ = row->committed_size;
        segment->live_bytes = static_cast<std::int64_t>(row->live_bytes);
        known.emplace(segment_path(*number), std::pair(std::move(segment), row->committed_size));
        return true;
      }));
  NACRE_TRY(bad);

  std::set<std::string> on_disk;
  NACRE_ASSIGN(auto names, directory_->list(folder));
  for (const std::string& name : names)
    on_disk.insert(fmt::format("{}/{}", folder, name));
  for (const SegmentNumber number : arriving_)
    on_disk.insert(segment_path(number));
  for (auto& [path, entry] : known) {
    NACRE_TRY(serve_the_rest(
        on_disk.erase(path) != 0
            ? recover_known(path, *entry.first, entry.second, read_only)
            : fail(ErrorCode::missing,
                   fmt::format("{} is missing from {}: {} bytes of live data were in it", path,
                               directory_->description(), entry.first->live_bytes.load())),
        read_only));
    segments_.emplace(entry.first->number, entry.first);
  }
  for (const std::string& path : on_disk) {
    if (!path.ends_with(".seg")) continue;  // not a segment
    NACRE_TRY(recover_unknown(path, volume_id, read_only));
  }
  return {};
}

Result<> SegmentTable::recover_known(const std::string& path, Segment& segment,
                                     std::uint64_t committed_size, bool read_only) {
  const bool arriving = arriving_.contains(segment.number);
  NACRE_ASSIGN(auto size,
               directory_->file_size(arriving ? arriving_segment_path(segment.number) : path));
  if (size < committed_size) {
    return fail(ErrorCode::missing, fmt::format("{} in {} is {} bytes short: it has {} of {}", path,
                                                directory_->description(), committed_size - size,
                                                size, committed_size));
  }
  if (size == committed_size || read_only) return {};
  NACRE_ASSIGN(auto file, directory_->open(path, OpenMode::read_write));
  spdlog::info("{}: cutting off {} bytes that no commit named", path, size - committed_size);
  NACRE_TRY(file->truncate(committed_size));
  segment.unsynced = true;
  return {};
}

Result<> SegmentTable::recover_unknown(const std::string& path, const engine::VolumeId& volume_id,
                                       bool read_only) {
  const auto number = std::strtoull(path.c_str() + folder.size() + 1, nullptr, 10);
  if (path != segment_path(SegmentNumber{number})) return {};  // not a segment's name
  // Numbers are given out one by one, and each commit says which is next. A file with a far higher
  // number is not Nacre's, and counting on from that number would end at numbers that are in use.
  if (number >= staged_next_number_ &&
      number - staged_next_number_ >= uncommitted_segment_count_max) {
    return fail(
        ErrorCode::tampered,
        fmt::format("{} in {} was not made by Nacre: the next segment of this volume is {}; "
                    "move the file away",
                    path, directory_->description(), staged_next_number_));
  }
  NACRE_ASSIGN(auto file, directory_->open(path, OpenMode::read));
  std::array<Byte, metadata::segment_header_size_bytes> bytes{};
  NACRE_ASSIGN(auto count, file->read(0, bytes));
  const auto header = metadata::decode_segment_header(bytes);
  if (count == bytes.size() && header) {
    NACRE_ASSIGN(auto session,
                 database_.get(Table::system, metadata::session_key_of(header->salt)));
    if (!session || header->volume_id != volume_id) {
      return fail(ErrorCode::rolled_back,
                  fmt::format("{} in {} belongs to a write session that the database does not "
                              "know: db/ was put back to an older state, or the file comes from "
                              "elsewhere; restore the newer db/, or move the file away",
                              path, directory_->description()));
    }
  }
  // The file has no header. Either its creation was cut short. Or all its records died before it
  // was ever synced, a commit dropped it, and power was lost before its removal was durable.
  if (read_only) return {};
  spdlog::info("{}: removing a segment that no commit named", path);
  NACRE_TRY(directory_->remove(path));
  folder_unsynced_ = true;
  next_number_ = std::max<std::uint64_t>(next_number_, number + 1);
  return {};
}

std::vector<SharedSegment> SegmentTable::all() const {
  SharedLock lock(mutex_);
  std::vector<SharedSegment> segments;
  segments.reserve(segments_.size());
  for (const auto& [number, segment] : segments_)
    segments.push_back(segment);
  return segments;
}

Result<SharedSegment> SegmentTable::find(SegmentNumber number) const {
  SharedLock lock(mutex_);
  const auto found = segments_.find(number);
  if (found == segments_.end()) {
    return fail(ErrorCode::missing, fmt::format("{} is not known", segment_path(number)));
  }
  return found->second;
}

Result<std::shared_ptr<metadata::BackingFile>> SegmentTable::file(Segment& segment) {
  std::shared_ptr<metadata::BackingFile> file;
  {
    LockGuard lock(segment.mutex_);
    if (segment.file_) return segment.file_;
    const bool arriving = arriving_.contains(segment.number);
    auto opened = directory_->open(
        arriving ? arriving_segment_path(segment.number) : segment_path(segment.number),
        OpenMode::read);
    if (!opened && opened.error().code == ErrorCode::not_found) {
      return fail(ErrorCode::missing, opened.error().message);
    }
    if (!opened) return tl::unexpected(opened.error());
    file = std::move(*opened);
    segment.file_ = file;
  }
  NACRE_ASSIGN(auto self, find(segment.number));
  remember_open(self);
  return file;
}

void SegmentTable::remember_open(const SharedSegment& segment) {
  SharedSegment oldest;
  {
    LockGuard lock(open_mutex_);
    if (open_.size() < open_file_count_max) {
      open_.push_back(segment);
      return;
    }
    oldest = open_[open_cursor_].lock();
    open_[open_cursor_] = segment;
    open_cursor_ = (open_cursor_ + 1) % open_file_count_max;
  }
  if (oldest && oldest != segment && !oldest->open_for_append && !oldest->unsynced) {
    LockGuard lock(oldest->mutex_);
    oldest->file_.reset();
  }
}

// If this and sync() run at once, the second one sees what the first one has done.
void SegmentTable::close_for_append(const SharedSegment& segment) {
  segment->open_for_append = false;
  if (!segment->unsynced) remember_open(segment);
}

Result<SharedSegment> SegmentTable::create(const engine::VolumeId& volume_id, std::uint32_t epoch,
                                           const engine::SessionSalt& salt) {
  auto segment = std::make_shared<Segment>();
  segment->epoch = epoch;
  segment->salt = salt;
  segment->made_here = true;
  // The number counts as used, and a commit stages it as used, only together with the segment. So a
  // file past it is one that no commit names.
  LockGuard creating(create_mutex_);
  {
    SharedLock lock(mutex_);
    segment->number = SegmentNumber{next_number_};
  }
  const std::string path = segment_path(segment->number);
  // A file of that name would be one that was not there when the volume was opened.
  NACRE_ASSIGN(auto file, directory_->open(path, OpenMode::create_new));
  folder_unsynced_ = true;
  const auto header = metadata::encode(metadata::SegmentHeader{
      .volume_id = volume_id, .segment = segment->number, .salt = salt, .epoch = epoch});
  if (const auto written = file->write(0, header); !written) {
    file.reset();
    static_cast<void>(directory_->remove(path));
    return tl::unexpected(written.error());
  }
  segment->written_size = header.size();
  segment->size = header.size();
  segment->unsynced = true;
  segment->changed = true;
  segment->open_for_append = true;
  {
    LockGuard lock(segment->mutex_);
    segment->file_ = std::move(file);
  }
  UniqueLock lock(mutex_);
  const bool is_new = segments_.emplace(segment->number, segment).second;
  NACRE_CHECK(is_new, "segment {} was made twice", segment->number.value);
  ++next_number_;
  return segment;
}

void SegmentTable::add_live(const metadata::RecordLocation& location, std::int64_t sign) {
  SharedLock lock(mutex_);
  const auto found = segments_.find(location.segment);
  if (found == segments_.end()) {
    // A segment that a row is to name is pinned. In a damaged volume a row may have named any
    // segment; fsck reports that.
    NACRE_CHECK(sign < 0, "a row is to name a record in segment {}, which is gone",
                location.segment.value);
    return;
  }
  const std::int64_t live = found->second->live_bytes +=
      sign * static_cast<std::int64_t>(location.stored_size);
  // For a segment that existed before, the count came from the row on disk.
  NACRE_CHECK(live >= 0 || !found->second->made_here, "segment {} has {} live bytes",
              location.segment.value, live);
  found->second->changed = true;
}

bool SegmentTable::stage() {
  UniqueLock lock(mutex_);
  ++stage_count_;
  bool left = false;
  for (auto place = segments_.begin(); place != segments_.end();) {
    const SharedSegment& segment = place->second;
    const bool empty = segment->live_bytes == 0 && !segment->open_for_append;
    const bool unwanted = empty && segment.use_count() == 1;
    left |= empty && !unwanted;
    if (!unwanted && !segment->changed) {
      ++place;
      continue;
    }
    if (unwanted) {
      database_.erase(Table::segments, metadata::segment_key(segment->number));
      doomed_.push_back(segment);
      place = segments_.erase(place);
      continue;
    }
    segment->changed = false;
    const std::uint64_t size = segment->size;
    NACRE_CHECK(size >= segment->staged_size_, "segment {} shrank from {} to {} bytes",
                segment->number.value, segment->staged_size_, size);
    segment->staged_size_ = size;
    database_.put(Table::segments, metadata::segment_key(segment->number),
                  metadata::encode(metadata::SegmentRow{.committed_size = size,
                                                        .live_bytes = live_bytes_of(*segment),
                                                        .epoch = segment->epoch,
                                                        .salt = segment->salt}));
    ++place;
  }
  if (staged_next_number_ != next_number_) {
    database_.put(Table::system, metadata::system_key_next_segment,
                  metadata::encode_u64(next_number_));
    staged_next_number_ = next_number_;
  }
  return left;
}

Result<> SegmentTable::sync() {
  std::vector<SharedSegment> waiting;
  {
    SharedLock lock(mutex_);
    for (const auto& [number, segment] : segments_) {
      if (segment->unsynced) {
        waiting.push_back(segment);
      } else {
        check_synced(number, segment->staged_size_, segment->synced_size_);
      }
    }
  }
  for (const SharedSegment& segment : waiting) {
    // Cleared first, since bytes that are appended during the sync set it again.
    segment->unsynced = false;
    const std::uint64_t written = segment->written_size;
    auto opened = file(*segment);
    auto synced = opened ? (*opened)->sync() : Result<>(tl::unexpected(opened.error()));
    if (!synced) {
      segment->unsynced = true;
      return synced;
    }
    segment->synced_size_ = written;
    check_synced(segment->number, segment->staged_size_, segment->synced_size_);
    if (!segment->open_for_append) remember_open(segment);  // it may be closed from now on
  }
  if (folder_unsynced_.exchange(false)) {
    if (auto synced = directory_->sync_directory(folder); !synced) {
      folder_unsynced_ = true;
      return synced;
    }
  }
  synced_stage_count_ = stage_count_;
  return {};
}

std::uint64_t SegmentTable::committed() {
  NACRE_CHECK(synced_stage_count_ == stage_count_,
              "rows were committed before the segments that they name were synced ({} of {})",
              synced_stage_count_, stage_count_);
  std::uint64_t removed_bytes = 0;
  for (const SharedSegment& segment : std::exchange(doomed_, {})) {
    NACRE_CHECK(segment->live_bytes == 0, "segment {} is to be removed with {} live bytes",
                segment->number.value, segment->live_bytes.load());
    if (const auto removed = directory_->remove(segment_path(segment->number)); !removed) {
      spdlog::warn("{}; the next mount removes it", removed.error().message);
    } else {
      removed_bytes += segment->size;
    }
    folder_unsynced_ = true;
  }
  return removed_bytes;
}

SharedSegment SegmentTable::find_small_victim(std::uint64_t size_max, std::size_t count_max) const {
  SharedLock lock(mutex_);
  SharedSegment smallest;
  std::size_t count = 0;
  for (const auto& [number, segment] : segments_) {
    if (segment->size >= size_max || !is_free_to_move(segment)) continue;
    ++count;
    if (smallest == nullptr || segment->size < smallest->size) smallest = segment;
  }
  return count > count_max ? smallest : nullptr;
}

SharedSegment SegmentTable::find_victim(double live_share_max) const {
  SharedLock lock(mutex_);
  SharedSegment victim;
  double best = -1;
  for (const auto& [number, segment] : segments_) {
    if (!is_free_to_move(segment)) continue;
    const double share = live_share_of(*segment);
    if (share > live_share_max) continue;
    // Benefit to cost (Rosenblum and Ousterhout, 1992): the freed bytes, times how long they are
    // likely to stay free, divided by the bytes that are read and written.
    const auto age = static_cast<double>(next_number_ - number.value);
    const double worth = (1 - share) * age / (1 + share);
    if (worth <= best) continue;
    best = worth;
    victim = segment;
  }
  return victim;
}

SharedSegment SegmentTable::find_outdated(std::uint32_t epoch) const {
  SharedLock lock(mutex_);
  for (const auto& [number, segment] : segments_) {
    if (segment->epoch >= epoch || segment->open_for_append || segment->immovable) continue;
    if (segment->live_bytes <= 0 || was_tried_in_vain(*segment)) continue;
    if (segment.use_count() == 1) return segment;
  }
  return nullptr;
}

OutdatedSegments SegmentTable::outdated(std::uint32_t epoch) const {
  SharedLock lock(mutex_);
  OutdatedSegments found;
  for (const auto& [number, segment] : segments_) {
    if (segment->epoch >= epoch) continue;
    ++found.count;
    found.live_bytes += live_bytes_of(*segment);
    if (segment->immovable && segment->live_bytes > 0) ++found.immovable_count;
  }
  return found;
}

SegmentTable::Totals SegmentTable::totals(double live_share_max) const {
  SharedLock lock(mutex_);
  Totals totals;
  for (const auto& [number, segment] : segments_) {
    const std::uint64_t live = live_bytes_of(*segment);
    const std::uint64_t size = segment->size;
    ++totals.count;
    totals.stored_bytes += size;
    totals.live_bytes += live;
    if (segment->immovable) ++totals.immovable_count;
    if (segment->hold_count > 0) {
      totals.held_bytes += size - std::min(size, live + metadata::segment_header_size_bytes);
    } else if (segment->immovable) {
      continue;
    } else if (live == 0 && !segment->open_for_append) {
      totals.empty_bytes += size;
      totals.reclaimable_bytes += size;
    } else if (!was_tried_in_vain(*segment)) {
      const std::uint64_t dead = size - std::min(size, live + metadata::segment_header_size_bytes);
      totals.movable_dead_bytes += dead;
      if (live_share_of(*segment) <= live_share_max) totals.reclaimable_bytes += dead;
    }
  }
  return totals;
}

}  // namespace nacre::fs
