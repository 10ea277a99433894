// SPDX-License-Identifier: Apache-2.0
#include "fs/space/reservation.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "gpu_engine/record/record.h"

namespace nacre::fs {

using metadata::ReservedRow;
using metadata::Table;

namespace {

constexpr std::uint32_t block_bytes_min = 4096;
constexpr std::uint32_t blocks_per_chunk_max = 32;  // the bits of a mask
// What a chunk's row grows by for one more patch, several times, since the database keeps its log
// and a merged table for a while.
constexpr std::uint64_t row_cost_bytes = 128;
constexpr std::uint64_t counted_batch = 256;

std::string mark_key() {
  return metadata::xattr_key(metadata::root_inode, metadata::reserved_mark_name);
}

std::string key_of(InodeNumber inode) {
  return metadata::xattr_key(metadata::root_inode, metadata::reserved_name(inode));
}

// Counts the blocks of the reservation that are not written. Blocks of chunks that are lost as a
// whole are taken out of it.
Result<std::uint64_t> count_unwritten(Reservation& reservation, const BlockSizes& sizes,
                                      const ChunkMap& map, InodeNumber inode, std::uint64_t size) {
  std::uint64_t sum = 0, written = 0;
  const std::uint64_t mapped = map.chunk_count(size);
  for (const BlockRange& range : reservation.row().ranges) {
    sum += range.end - range.first;
    const std::uint64_t end = std::min((range.end + sizes.per_chunk - 1) / sizes.per_chunk, mapped);
    for (std::uint64_t index = range.first / sizes.per_chunk; index < end;) {
      NACRE_ASSIGN(const auto chunks,
                   map.find_range(inode, ChunkIndex{index}, std::min(counted_batch, end - index)));
      std::uint64_t step = 0;
      while (step < chunks.size()) {
        const MappedChunk& chunk = chunks[step];
        if (chunk.hole) {
          step += std::min(chunk.run, end - index - step);
          continue;
        }
        const std::uint64_t base = (index + step) * sizes.per_chunk;
        for (std::uint32_t i = 0; i < sizes.per_chunk; ++i) {
          const bool is_in = base + i >= range.first && base + i < range.end;
          if (is_in && (sizes.mask_of(chunk.row) >> i & 1) != 0) ++written;
        }
        ++step;
      }
      index += step;
    }
  }
  return sum - std::min(sum, written);
}

}  // namespace

BlockSizes::BlockSizes(std::uint32_t chunk_size_bytes)
    : chunk_bytes(chunk_size_bytes),
      block_bytes(std::min(chunk_size_bytes,
                           std::max(block_bytes_min, chunk_size_bytes / blocks_per_chunk_max))),
      per_chunk(chunk_bytes / block_bytes) {}

std::uint32_t BlockSizes::mask_of(std::uint32_t from, std::uint32_t to) const {
  to = std::min(to, chunk_bytes);
  if (from >= to) return 0;
  const std::uint32_t first = from / block_bytes;
  const std::uint32_t end = (to + block_bytes - 1) / block_bytes;
  const std::uint64_t below_end = (std::uint64_t{1} << end) - 1;
  return static_cast<std::uint32_t>(below_end & ~((std::uint64_t{1} << first) - 1));
}

std::uint32_t BlockSizes::mask_of(const metadata::ChunkRow& row) const {
  std::uint32_t mask = row.base ? mask_of(0, row.base->valid_size) : 0;
  for (const metadata::ChunkPatch& patch : row.patches)
    mask |= mask_of(patch.offset, patch.offset + patch.valid_size);
  for (const metadata::LostRange& range : row.lost)
    mask |= mask_of(range.offset, range.end());
  return mask;
}

std::uint64_t BlockSizes::cost_bytes() const {
  static const std::uint64_t overhead = engine::record_header_size_bytes +
                                        sizeof(engine::RecordBodyHeader) +
                                        engine::tag_size_bytes_max + row_cost_bytes;
  // An eighth: more than the padding that takes most adds, and than whole cipher blocks do.
  return block_bytes + block_bytes / 8 + overhead;
}

Reservation::Reservation(const BlockSizes& sizes, const ReservedRow& row) : sizes_(sizes) {
  const LockGuard lock(mutex_);
  for (const BlockRange& range : row.ranges)
    ranges_.emplace(range.first, range.end);
  is_empty_ = ranges_.empty();
}

std::uint32_t Reservation::mask(std::uint64_t chunk) const {
  if (is_empty()) return 0;
  const std::uint64_t begin = chunk * sizes_.per_chunk;
  const std::uint64_t end = begin + sizes_.per_chunk;
  std::uint32_t mask = 0;
  const LockGuard lock(mutex_);
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin()) --range;
  for (; range != ranges_.end() && range->first < end; ++range) {
    const std::uint64_t from = std::max(range->first, begin), to = std::min(range->second, end);
    if (from >= to) continue;
    mask |= sizes_.mask_of(static_cast<std::uint32_t>(from - begin) * sizes_.block_bytes,
                           static_cast<std::uint32_t>(to - begin) * sizes_.block_bytes);
  }
  return mask;
}

std::vector<BlockRange> Reservation::outside(std::uint64_t first, std::uint64_t end) const {
  std::vector<BlockRange> ranges;
  const LockGuard lock(mutex_);
  auto range = ranges_.upper_bound(first);
  if (range != ranges_.begin()) --range;
  for (; range != ranges_.end() && range->first < end; ++range) {
    if (range->second <= first) continue;
    if (first < range->first) ranges.push_back({first, range->first});
    first = range->second;
  }
  if (first < end) ranges.push_back({first, end});
  return ranges;
}

bool Reservation::add(std::uint64_t first, std::uint64_t end) {
  if (first >= end) return true;
  const LockGuard lock(mutex_);
  auto range = ranges_.upper_bound(first);
  if (range != ranges_.begin() && std::prev(range)->second >= first) --range;
  auto last = range;
  std::uint64_t joined_first = first, joined_end = end;
  std::size_t joined = 0;
  for (; last != ranges_.end() && last->first <= end; ++last, ++joined) {
    joined_first = std::min(joined_first, last->first);
    joined_end = std::max(joined_end, last->second);
  }
  if (ranges_.size() - joined + 1 > metadata::reserved_range_count_max) return false;
  ranges_.erase(range, last);
  ranges_.emplace(joined_first, joined_end);
  is_empty_ = false;
  changed_ = true;
  return true;
}

std::uint64_t Reservation::remove(std::uint64_t first, std::uint64_t end) {
  if (first >= end) return 0;
  std::uint64_t count = 0;
  const LockGuard lock(mutex_);
  auto range = ranges_.upper_bound(first);
  if (range != ranges_.begin()) --range;
  while (range != ranges_.end() && range->first < end) {
    const BlockRange old{range->first, range->second};
    if (old.end <= first) {
      ++range;
      continue;
    }
    range = ranges_.erase(range);
    count += std::min(old.end, end) - std::max(old.first, first);
    if (old.first < first) ranges_.emplace(old.first, first);
    if (old.end > end) range = ranges_.emplace(end, old.end).first;
  }
  if (count > 0) changed_ = true;
  is_empty_ = ranges_.empty();
  return count;
}

std::optional<BlockRange> Reservation::surplus_range() const {
  const LockGuard lock(mutex_);
  if (ranges_.size() <= metadata::reserved_range_count_max) return std::nullopt;
  const auto smallest = std::min_element(
      ranges_.begin(), ranges_.end(),
      [](const auto& a, const auto& b) { return a.second - a.first < b.second - b.first; });
  return BlockRange{smallest->first, smallest->second};
}

std::uint64_t Reservation::end() const {
  const LockGuard lock(mutex_);
  return ranges_.empty() ? 0 : ranges_.rbegin()->second;
}

ReservedRow Reservation::row() const {
  ReservedRow row{.unwritten_count = unwritten_count(), .ranges = {}};
  const LockGuard lock(mutex_);
  row.ranges.reserve(ranges_.size());
  for (const auto& [first, end] : ranges_)
    row.ranges.push_back({first, end});
  return row;
}

void Reservations::load(metadata::Database& database, const ChunkMap& map, bool read_only) {
  const std::string prefix =
      key_of(InodeNumber{0}).substr(0, mark_key().size() + 1);  // with the '/' that ends it
  const std::size_t name_at = mark_key().size() - metadata::reserved_mark_name.size();
  std::vector<std::pair<std::string, std::string>> rows;
  const auto scanned = database.scan(Table::xattrs, prefix, metadata::prefix_end(prefix),
                                     [&](std::string_view key, std::string_view value) {
                                       rows.emplace_back(key.substr(name_at), value);
                                       return true;
                                     });
  if (!scanned) {
    spdlog::warn("the rows of reserved blocks cannot be read: {}", scanned.error().message);
  }
  const auto mark = database.get(Table::xattrs, mark_key());
  const auto next = database.get(Table::system, metadata::system_key_next_session);
  const bool has_mark = mark && *mark;
  const bool is_true = has_mark && next && *next && **mark == **next;
  const auto use = [&](const std::string& name, const std::string& value) -> Result<> {
    NACRE_ASSIGN(const InodeNumber inode, metadata::decode_reserved_name(name));
    NACRE_ASSIGN(const auto stored, database.get(Table::inodes, metadata::inode_key(inode)));
    if (!stored) return fail(ErrorCode::missing, "its file is not there");
    NACRE_ASSIGN(const auto row, metadata::decode_inode_row(*stored));
    NACRE_ASSIGN(const auto reserved, metadata::decode_reserved_row(value));
    const auto reservation = std::make_shared<Reservation>(sizes_, reserved);
    std::uint64_t count = reserved.unwritten_count;
    if (!is_true) {
      NACRE_ASSIGN(count, count_unwritten(*reservation, sizes_, map, inode, row.size));
      reservation->changed_ = true;
    }
    reservation->unwritten_ = count;
    ballast_.add_promised(count * sizes_.cost_bytes());
    const LockGuard lock(mutex_);
    files_.emplace(inode.value, reservation);
    return {};
  };
  std::vector<InodeNumber> to_stage;
  for (const auto& [name, value] : rows) {
    const auto used = use(name, value);
    if (used) {
      to_stage.push_back(*metadata::decode_reserved_name(name));
      continue;
    }
    spdlog::warn("reserved blocks of a file ({}) count as not reserved: {}", name,
                 used.error().message);
    // A row that could not be read may be good at the next mount.
    if (read_only || used.error().code == ErrorCode::io) continue;
    database.erase(Table::xattrs, metadata::xattr_key(metadata::root_inode, name));
  }
  {
    const LockGuard lock(mutex_);
    count_ = files_.size();
    if (is_true) staged_mark_ = metadata::decode_u64(**mark).value_or(0);
  }
  if (read_only) return;
  for (const InodeNumber inode : to_stage)
    stage(inode, database);
}

void Reservations::keep_mark(metadata::Database& database, std::uint64_t next_session) {
  const auto mark = database.get(Table::xattrs, mark_key());
  if (!mark || !*mark) return;
  const auto number = metadata::decode_u64(**mark);
  if (number && *number + 1 == next_session)
    database.put(Table::xattrs, mark_key(), metadata::encode_u64(next_session));
}

std::shared_ptr<Reservation> Reservations::find(InodeNumber inode) const {
  if (count_.load(std::memory_order_acquire) == 0) return nullptr;
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  return place == files_.end() ? nullptr : place->second;
}

std::shared_ptr<Reservation> Reservations::find_or_make(InodeNumber inode) {
  const LockGuard lock(mutex_);
  std::shared_ptr<Reservation>& reservation = files_[inode.value];
  if (!reservation) reservation = std::make_shared<Reservation>(sizes_);
  count_.store(files_.size(), std::memory_order_release);
  return reservation;
}

Result<> Reservations::promise(std::uint64_t block_count,
                               const std::function<std::uint64_t()>& dirty_bytes) {
  if (block_count == 0) return {};
  return ballast_.promise(block_count * sizes_.cost_bytes(), dirty_bytes);
}

void Reservations::give_back(std::uint64_t block_count) {
  ballast_.remove_promised(block_count * sizes_.cost_bytes());
}

void Reservations::note_added(Reservation& reservation, std::uint64_t block_count) {
  reservation.unwritten_ += block_count;
  reservation.changed_ = true;
}

void Reservations::note_gone(Reservation& reservation, std::uint64_t block_count) {
  std::uint64_t before = reservation.unwritten_;
  std::uint64_t gone = 0;
  do {
    gone = std::min(before, block_count);
  } while (!reservation.unwritten_.compare_exchange_weak(before, before - gone));
  if (gone == 0) return;
  reservation.changed_ = true;
  ballast_.remove_promised(gone * sizes_.cost_bytes());
}

void Reservations::stage(InodeNumber inode, metadata::Database& database) {
  const auto reservation = find(inode);
  if (!reservation || !reservation->changed_.exchange(false)) return;
  // Blocks that were all written are not reserved any more. Nothing needs to be known of them.
  if (reservation->unwritten_count() == 0) {
    reservation->remove(0, reservation->end());
    reservation->changed_ = false;
  }
  if (reservation->is_empty()) {
    database.erase(Table::xattrs, key_of(inode));
  } else {
    database.put(Table::xattrs, key_of(inode), metadata::encode(reservation->row()));
  }
}

void Reservations::erase(InodeNumber inode, metadata::Database& database) {
  const auto reservation = find(inode);
  if (!reservation) return;
  note_gone(*reservation, reservation->unwritten_count());
  database.erase(Table::xattrs, key_of(inode));
  const LockGuard lock(mutex_);
  files_.erase(inode.value);
  count_.store(files_.size(), std::memory_order_release);
}

void Reservations::stage_mark(metadata::Database& database, std::uint64_t next_session) {
  ballast_.note_staged();
  if (count_.load(std::memory_order_acquire) == 0) return;
  const LockGuard lock(mutex_);
  if (staged_mark_ == next_session) return;
  database.put(Table::xattrs, mark_key(), metadata::encode_u64(next_session));
  staged_mark_ = next_session;
}

}  // namespace nacre::fs
