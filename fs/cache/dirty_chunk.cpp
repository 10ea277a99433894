// SPDX-License-Identifier: Apache-2.0
// Joining, cutting and overlaying the dirty pieces of a chunk.
#include "fs/cache/dirty_chunk.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nacre::fs {

void DirtyChunk::write(std::uint32_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  const auto end = offset + static_cast<std::uint32_t>(bytes.size());
  // The pieces that [offset, end) overlaps or touches become one.
  auto first = std::find_if(pieces_.begin(), pieces_.end(),
                            [&](const Piece& piece) { return piece.end() >= offset; });
  auto last =
      std::find_if(first, pieces_.end(), [&](const Piece& piece) { return piece.offset > end; });
  if (first == last) {
    pieces_.insert(first, Piece{offset, Bytes(bytes.begin(), bytes.end())});
    size_ += bytes.size();
    return;
  }
  Piece& target = *first;
  size_ -= target.bytes.size();
  if (offset < target.offset) {
    Bytes joined;
    joined.reserve(std::max(end, target.end()) - offset);
    joined.assign(bytes.begin(), bytes.end());
    if (target.end() > end) {
      joined.insert(joined.end(), target.bytes.begin() + (end - target.offset), target.bytes.end());
    }
    target.bytes = std::move(joined);
    target.offset = offset;
  } else {
    const std::size_t at = offset - target.offset;
    const std::size_t inside = std::min(bytes.size(), target.bytes.size() - at);
    std::copy_n(bytes.begin(), inside, target.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    target.bytes.insert(target.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(inside),
                        bytes.end());
  }
  for (auto piece = std::next(first); piece != last; ++piece) {
    size_ -= piece->bytes.size();
    if (piece->end() > target.end()) {
      target.bytes.insert(target.bytes.end(), piece->bytes.begin() + (target.end() - piece->offset),
                          piece->bytes.end());
    }
  }
  size_ += target.bytes.size();
  pieces_.erase(std::next(first), last);
}

void DirtyChunk::erase(std::uint32_t from, std::uint32_t to) {
  if (from >= to) return;
  std::vector<Piece> kept;
  size_ = 0;
  for (Piece& piece : pieces_) {
    if (piece.end() <= from || piece.offset >= to) {
      kept.push_back(std::move(piece));
    } else {
      if (piece.end() > to) {
        Piece right{to, Bytes(piece.bytes.begin() + (to - piece.offset), piece.bytes.end())};
        if (piece.offset < from) {
          piece.bytes.resize(from - piece.offset);
          kept.push_back(std::move(piece));
        }
        kept.push_back(std::move(right));
      } else if (piece.offset < from) {
        piece.bytes.resize(from - piece.offset);
        kept.push_back(std::move(piece));
      }
    }
  }
  pieces_ = std::move(kept);
  for (const Piece& piece : pieces_)
    size_ += piece.bytes.size();
}

void DirtyChunk::merge_under(const DirtyChunk& older) {
  DirtyChunk merged = older;
  for (const Piece& piece : pieces_)
    merged.write(piece.offset, piece.bytes);
  *this = std::move(merged);
}

void DirtyChunk::overlay(std::uint32_t offset, MutableByteView out) const {
  const auto end = offset + static_cast<std::uint32_t>(out.size());
  for (const Piece& piece : pieces_) {
    const std::uint32_t from = std::max(piece.offset, offset);
    const std::uint32_t to = std::min(piece.end(), end);
    if (from < to) {
      std::copy_n(piece.bytes.begin() + (from - piece.offset), to - from,
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
