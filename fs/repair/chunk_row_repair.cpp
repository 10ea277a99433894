// SPDX-License-Identifier: Apache-2.0
// The repair of the tables chunks and inlined. Afterwards exactly one row covers each chunk below a
// file's size, no row lies beyond it, and rows and inlined bytes match. A chunk that no row covered
// is lost, because nothing tells whether it was a hole.
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <set>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "fs/repair/repair_parts.h"
#include "fs/store/chunk_map.h"

namespace nacre::fs {

using metadata::ChunkIndex;
using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::InodeNumber;
using metadata::Table;

namespace {

// A row over count chunks. A row that is not a chunk's own is a hole, or lost.
struct Piece {
  std::uint64_t first = 0;
  std::uint64_t count = 1;
  std::optional<ChunkRow> chunk;
  bool is_lost = false;
  std::uint64_t end() const { return first + count; }
};

struct File {
  InodeNumber inode;
  bool exists = false;
  bool is_orphan = false;
  std::uint64_t size = 0;
};

class ChunkRowRepair {
 public:
  explicit ChunkRowRepair(RepairContext& context)
      : context_(context), chunk_size_(context.chunk_size_bytes()) {}

  Result<> run() {
    NACRE_TRY(read_inlined());
    NACRE_TRY(find_bad_files());
    for (const std::uint64_t inode : bad_)
      NACRE_TRY(repair_file(InodeNumber{inode}));
    return erase_unnamed();
  }

 private:
  Result<> read_inlined();
  Result<> find_bad_files();
  Result<> erase_unnamed();
  Result<File> file_of(InodeNumber inode);
  bool is_bad(const File& file, const Piece& piece, std::uint64_t next);
  bool is_bad_piece(InodeNumber inode, ChunkIndex index, const ChunkRow& row,
                    const ChunkPatch* patch) const;
  std::uint64_t chunk_count(const File& file) const {
    return file.size / chunk_size_ + (file.size % chunk_size_ != 0);
  }
  std::uint32_t room(const File& file, std::uint64_t index) const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(chunk_size_, file.size - index * chunk_size_));
  }
  Result<> repair_file(InodeNumber inode);
  std::vector<Piece> put_in_order(const File& file, std::vector<Piece> pieces) const;
  Result<> put(const File& file, const Piece& piece, std::map<std::string, std::string>& rows);
  Result<> put_lost(const File& file, std::uint64_t first, std::uint64_t end,
                    std::map<std::string, std::string>& rows);

  RepairContext& context_;
  const std::uint32_t chunk_size_;
  std::map<std::string, std::uint32_t>
      inlined_;                          // sizes by key; few, since commits move older ones
  std::set<std::string> named_inlined_;  // that rows of good files name
  std::set<std::uint64_t> bad_;          // files whose rows must be repaired
};

// The piece that a chunk's row describes, or none if the row makes no sense.
std::optional<Piece> piece_of(std::uint64_t index, std::string_view value) {
  auto row = metadata::decode_chunk_map_row(value);
  if (!row) return {};
  if (row->chunk) return Piece{.first = index, .count = 1, .chunk = std::move(row->chunk)};
  Piece piece{.first = index, .chunk = {}};
  piece.is_lost = row->lost.has_value();
  piece.count = row->lost ? row->lost->chunk_count : row->hole->chunk_count;
  piece.count = std::min(piece.count, std::numeric_limits<std::uint64_t>::max() - index);
  return piece;
}

Result<> ChunkRowRepair::read_inlined() {
  return context_.scan(Table::inlined, [&](std::string_view key, std::string_view value) {
    inlined_.emplace(key, static_cast<std::uint32_t>(value.size()));
  });
}

Result<File> ChunkRowRepair::file_of(InodeNumber inode) {
  File file{.inode = inode};
  NACRE_ASSIGN(const auto value,
               context_.database().get(Table::inodes, metadata::inode_key(inode)));
  if (!value) return file;
  NACRE_ASSIGN(const auto row, metadata::decode_inode_row(*value));
  file.exists = S_ISREG(row.mode);
  file.is_orphan = row.link_count == 0;
  file.size = file.exists ? row.size : 0;
  return file;
}

// Whether this piece is wrong in the table as it is. Pieces come in order; next is the first chunk
// that none has covered so far.
bool ChunkRowRepair::is_bad(const File& file, const Piece& piece, std::uint64_t next) {
  const std::uint64_t count = chunk_count(file);
  if (!file.exists || piece.first < next || piece.end() > count) return true;
  if (piece.first > next && !file.is_orphan) return true;
  if (!piece.chunk) {
    const bool reaches_past = piece.end() > file.size / chunk_size_;
    return piece.is_lost && (reaches_past || context_.options.drop_damaged);
  }
  const ChunkRow& row = *piece.chunk;
  if (content_end(row) > room(file, piece.first)) return true;
  if (context_.options.drop_damaged && !row.lost.empty()) return true;
  const ChunkIndex index{piece.first};
  if (row.base && is_bad_piece(file.inode, index, row, nullptr)) return true;
  return std::any_of(row.patches.begin(), row.patches.end(), [&](const ChunkPatch& patch) {
    return is_bad_piece(file.inode, index, row, &patch);
  });
}

bool ChunkRowRepair::is_bad_piece(InodeNumber inode, ChunkIndex index, const ChunkRow& row,
                                  const ChunkPatch* patch) const {
  if (patch == nullptr) return row.base->plain_size > chunk_size_;
  if (patch->offset > chunk_size_ || patch->plain_size > chunk_size_ - patch->offset) return true;
  if (patch->location) return false;
  const auto bytes =
      inlined_.find(metadata::inlined_key(inode, index, patch->version, patch->offset));
  return bytes == inlined_.end() || bytes->second != patch->plain_size;
}

Result<> ChunkRowRepair::find_bad_files() {
  // The sizes of files, and the end of the rows of each.
  struct State {
    std::uint64_t size = 0;
    std::uint64_t next = 0;
    bool is_regular = false, is_orphan = false;
  };
  std::map<std::uint64_t, State> files;
  NACRE_TRY(context_.scan(Table::inodes, [&](std::string_view key, std::string_view value) {
    const auto number = metadata::decode_inode_key(key);
    const auto row = metadata::decode_inode_row(value);
    if (!number || !row || !S_ISREG(row->mode)) return;
    files.emplace(number->value,
                  State{.size = row->size, .is_regular = true, .is_orphan = row->link_count == 0});
  }));
  std::vector<std::string> nonsense;
  NACRE_TRY(context_.scan(Table::chunks, [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_chunk_key(key);
    if (!parts) {
      nonsense.emplace_back(key);
      return;
    }
    State& state = files[parts->inode.value];
    const File file{.inode = parts->inode,
                    .exists = state.is_regular,
                    .is_orphan = state.is_orphan,
                    .size = state.size};
    const auto piece = piece_of(parts->index.value, value);
    if (!piece || is_bad(file, *piece, state.next)) bad_.insert(parts->inode.value);
    if (!piece) return;
    state.next = std::max(state.next, piece->end());
    if (!piece->chunk) return;
    for (const auto& patch : piece->chunk->patches) {
      if (patch.location) continue;
      named_inlined_.insert(
          metadata::inlined_key(parts->inode, parts->index, patch.version, patch.offset));
    }
  }));
  for (const auto& [number, state] : files) {
    const File file{.exists = state.is_regular, .size = state.size};
    if (!state.is_orphan && state.next < chunk_count(file)) bad_.insert(number);
  }
  for (const auto& key : nonsense)
    NACRE_TRY(context_.draft.erase(Table::chunks, key, "the key of a chunk makes no sense"));
  return {};
}

// Erases inlined bytes that no row of the repaired table names.
Result<> ChunkRowRepair::erase_unnamed() {
  for (const auto& [key, size] : inlined_) {
    if (named_inlined_.contains(key)) continue;
    const auto parts = metadata::decode_inlined_key(key);
    NACRE_TRY(context_.draft.erase(Table::inlined, key, "inlined bytes that no chunk names",
                                   parts ? std::optional(parts->inode) : std::nullopt));
  }
  return {};
}

// Holds the rows of one file in memory.
Result<> ChunkRowRepair::repair_file(InodeNumber inode) {
  NACRE_ASSIGN(const File file, file_of(inode));
  std::map<std::string, std::string> before;
  const std::string prefix = metadata::chunk_prefix(inode);
  NACRE_TRY(context_.database().scan(Table::chunks, prefix, metadata::prefix_end(prefix),
                                     [&](std::string_view key, std::string_view value) {
                                       before.emplace(key, value);
                                       return true;
                                     }));
  std::vector<Piece> pieces;
  for (const auto& [key, value] : before) {
    NACRE_ASSIGN(const auto parts, metadata::decode_chunk_key(key));
    if (auto piece = piece_of(parts.index.value, value)) pieces.push_back(std::move(*piece));
  }
  std::map<std::string, std::string> after;
  if (file.exists) {
    std::uint64_t next = 0;
    for (const Piece& piece : put_in_order(file, std::move(pieces))) {
      if (piece.first > next && !file.is_orphan) {
        NACRE_TRY(put_lost(file, next, piece.first, after));
      }
      NACRE_TRY(put(file, piece, after));
      next = piece.end();
    }
    if (!file.is_orphan) NACRE_TRY(put_lost(file, next, chunk_count(file), after));
  }
  const std::string why =
      file.exists ? fmt::format("the chunks of inode {} must each be covered once", inode.value)
                  : fmt::format("chunks belong to inode {}, which is no file", inode.value);
  for (const auto& [key, value] : before) {
    if (!after.contains(key)) NACRE_TRY(context_.draft.erase(Table::chunks, key, why, inode));
  }
  for (const auto& [key, value] : after) {
    const auto same = before.find(key);
    if (same != before.end() && same->second == value) continue;
    NACRE_TRY(context_.draft.put(Table::chunks, key, value, why, inode));
  }
  // Inlined bytes that only old rows named are erased, too.
  const std::string inlined = metadata::inlined_prefix(inode);
  for (auto place = named_inlined_.lower_bound(inlined);
       place != named_inlined_.end() && place->starts_with(inlined);) {
    place = named_inlined_.erase(place);
  }
  for (const auto& [key, value] : after) {
    const auto row = metadata::decode_chunk_map_row(value);
    const auto parts = metadata::decode_chunk_key(key);
    if (!row || !parts || !row->chunk) continue;
    for (const auto& patch : row->chunk->patches) {
      if (patch.location) continue;
      named_inlined_.insert(
          metadata::inlined_key(inode, parts->index, patch.version, patch.offset));
    }
  }
  return {};
}

// The pieces without overlaps, and none past the file's end. A chunk's own row takes precedence
// over a row over many chunks.
std::vector<Piece> ChunkRowRepair::put_in_order(const File& file, std::vector<Piece> pieces) const {
  std::vector<Piece> ordered;
  const std::uint64_t count = chunk_count(file);
  for (Piece& piece : pieces) {
    if (piece.first >= count) continue;
    piece.count = std::min(piece.count, count - piece.first);
    if (!ordered.empty() && ordered.back().end() > piece.first) {
      // Keys differ, so the piece before is over many chunks, and this piece begins within it.
      Piece rest = ordered.back();
      ordered.back().count = piece.first - ordered.back().first;
      const std::uint64_t end = piece.end();
      ordered.push_back(std::move(piece));
      if (rest.end() <= end) continue;
      rest.count = rest.end() - end;
      rest.first = end;
      ordered.push_back(std::move(rest));
    } else {
      ordered.push_back(std::move(piece));
    }
  }
  return ordered;
}

Result<> ChunkRowRepair::put(const File& file, const Piece& piece,
                             std::map<std::string, std::string>& rows) {
  const ChunkIndex index{piece.first};
  if (!piece.chunk) {
    if (piece.is_lost) return put_lost(file, piece.first, piece.end(), rows);
    rows[metadata::chunk_key(file.inode, index)] = metadata::encode(metadata::HoleRow{piece.count});
    return {};
  }
  const ChunkRow& old = *piece.chunk;
  ChunkRow row = lose_pieces(
      old, [&](const ChunkPatch* patch) { return is_bad_piece(file.inode, index, old, patch); },
      chunk_size_);
  cut_row(row, room(file, piece.first));
  NACRE_ASSIGN(rows[metadata::chunk_key(file.inode, index)],
               finish_row(context_, file.inode, index, std::move(row), &old, Verdict::missing,
                          "the database no longer has what the chunk is made of"));
  return {};
}

Result<> ChunkRowRepair::put_lost(const File& file, std::uint64_t first, std::uint64_t end,
                                  std::map<std::string, std::string>& rows) {
  if (first >= end) return {};
  const std::uint64_t size = std::min(end * chunk_size_, file.size) - first * chunk_size_;
  const bool drops = context_.options.drop_damaged;
  const std::uint64_t whole_end = std::min(end, file.size / chunk_size_);
  context_.draft.add(LostBytes{.inode = file.inode,
                               .offset = first * chunk_size_,
                               .size = size,
                               .verdict = Verdict::missing,
                               .why = "no row says what these chunks are made of",
                               .is_dropped = drops,
                               .paths = {}});
  if (drops) {
    rows[metadata::chunk_key(file.inode, ChunkIndex{first})] =
        metadata::encode(metadata::HoleRow{end - first});
    return {};
  }
  if (whole_end > first) {
    rows[metadata::chunk_key(file.inode, ChunkIndex{first})] =
        metadata::encode(metadata::LostRow{whole_end - first});
  }
  if (whole_end < end) {
    rows[metadata::chunk_key(file.inode, ChunkIndex{whole_end})] =
        metadata::encode(lost_chunk(room(file, whole_end)));
  }
  return {};
}

}  // namespace

Result<> repair_chunk_rows(RepairContext& context) {
  return ChunkRowRepair(context).run();
}

}  // namespace nacre::fs
