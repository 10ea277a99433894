// SPDX-License-Identifier: Apache-2.0
// Joins, cuts and overlays the dirty pieces of a chunk.
#include "fs/cache/dirty_chunk.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nacre::fs {

// If a joined piece has half of a chunk, the rest is expected, so room for a whole chunk is made.
void DirtyChunk::make_room(PlainBytes& bytes, std::size_t size) const {
  if (size <= bytes.capacity()) return;
  const std::size_t block = memory_ == nullptr ? 0 : memory_->block_size_bytes();
  if (size <= block && 2 * size >= block) bytes.reserve(block);
}

void DirtyChunk::write(std::uint32_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  try {
    write_pieces(offset, bytes);
  } catch (...) {
    count();
    throw;
  }
}

void DirtyChunk::count() noexcept {
  size_ = 0;
  for (const Piece& piece : pieces_)
    size_ += piece.bytes.size();
}

void DirtyChunk::write_pieces(std::uint32_t offset, ByteView bytes) {
  const auto end = offset + static_cast<std::uint32_t>(bytes.size());
  // The pieces that [offset, end) overlaps or touches are joined into one.
  auto first = std::find_if(pieces_.begin(), pieces_.end(),
                            [&](const Piece& piece) { return piece.end() >= offset; });
  auto last =
      std::find_if(first, pieces_.end(), [&](const Piece& piece) { return piece.offset > end; });
  if (first == last) {
    pieces_.insert(first, Piece{offset, PlainBytes(bytes, memory_)});
    size_ += bytes.size();
    return;
  }
  Piece& target = *first;
  size_ -= target.bytes.size();
  if (offset < target.offset) {
    PlainBytes joined(memory_);
    const std::size_t size = std::max(end, target.end()) - offset;
    make_room(joined, size);
    joined.reserve(size);
    joined.append(bytes);
    if (target.end() > end) joined.append(ByteView(target.bytes).subspan(end - target.offset));
    target.bytes = std::move(joined);
    target.offset = offset;
  } else {
    const std::size_t at = offset - target.offset;
    const std::size_t inside = std::min(bytes.size(), target.bytes.size() - at);
    make_room(target.bytes, at + bytes.size());
    std::copy_n(bytes.begin(), inside, target.bytes.data() + at);
    target.bytes.append(bytes.subspan(inside));
  }
  for (auto piece = std::next(first); piece != last; ++piece) {
    size_ -= piece->bytes.size();
    if (piece->end() > target.end()) {
      make_room(target.bytes, piece->end() - target.offset);
      target.bytes.append(ByteView(piece->bytes).subspan(target.end() - piece->offset));
    }
  }
  size_ += target.bytes.size();
  pieces_.erase(std::next(first), last);
}

void DirtyChunk::erase(std::uint32_t from, std::uint32_t to) {
  if (from >= to) return;
  // Steps that may fail come first, before any piece has moved.
  std::vector<Piece> kept;
  kept.reserve(pieces_.size() + 1);
  PlainBytes right(memory_);
  for (const Piece& piece : pieces_) {
    if (piece.offset < to && piece.end() > to && piece.end() > from)
      right = PlainBytes(ByteView(piece.bytes).subspan(to - piece.offset), memory_);
  }
  for (Piece& piece : pieces_) {
    if (piece.end() <= from || piece.offset >= to) {
      kept.push_back(std::move(piece));
    } else {
      const bool reaches_past = piece.end() > to;
      if (piece.offset < from) {
        piece.bytes.shrink(from - piece.offset);
        kept.push_back(std::move(piece));
      }
      if (reaches_past) kept.push_back(Piece{to, std::move(right)});
    }
  }
  pieces_ = std::move(kept);
  count();
}

void DirtyChunk::merge_under(const DirtyChunk& older) {
  DirtyChunk merged = older;
  for (const Piece& piece : pieces_)
    merged.write(piece.offset, piece.bytes);
  merged.is_punched_ = is_punched_ || older.is_punched_;
  merged.flush_cost_bytes_ = flush_cost_bytes_;
  *this = std::move(merged);
}

void DirtyChunk::overlay(std::uint32_t offset, MutableByteView out) const {
  const auto end = offset + static_cast<std::uint32_t>(out.size());
  for (const Piece& piece : pieces_) {
    const std::uint32_t from = std::max(piece.offset, offset);
    const std::uint32_t to = std::min(piece.end(), end);
    if (from < to) {
      std::copy_n(piece.bytes.data() + (from - piece.offset), to - from,
                  out.begin() + (from - offset));
    }
  }
}

bool DirtyChunk::covers(std::uint32_t from, std::uint32_t to) const {
  return from >= to || std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
           return piece.offset <= from && piece.end() >= to;
         });
}

}  // namespace nacre::fs
