// SPDX-License-Identifier: Apache-2.0
// The bytes of one chunk that were written and not flushed yet, as sorted pieces that neither
// overlap nor touch. Offsets are within the chunk. A piece that fills the chunk can be sealed
// without a copy. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/store/plain_memory.h"
#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

class DirtyChunk {
 public:
  struct Piece {
    std::uint32_t offset;
    PlainBytes bytes;  // not empty
    std::uint32_t end() const { return offset + static_cast<std::uint32_t>(bytes.size()); }
  };

  // memory has blocks of the size of a chunk and outlives this object. Null: the heap is used.
  explicit DirtyChunk(PlainMemory* memory = nullptr) : memory_(memory) {}

  // Later bytes replace earlier ones. If memory runs out, some of them may have been replaced.
  void write(std::uint32_t offset, ByteView bytes);
  // Forgets [from, to). If memory runs out, nothing is forgotten.
  void erase(std::uint32_t from, std::uint32_t to);
  // Adds the bytes of older in the ranges where this chunk has none.
  void merge_under(const DirtyChunk& older);

  // Copies the dirty bytes of [offset, offset + out.size()) to out, and leaves the rest of out.
  void overlay(std::uint32_t offset, MutableByteView out) const;
  bool covers(std::uint32_t from, std::uint32_t to) const;

  // Notes that some of the bytes are punched zeros, so the chunk may have become a hole.
  void note_punched() { is_punched_ = true; }
  bool is_punched() const { return is_punched_; }

  // What its flush may take on disk, as its owner counts it (flush_cost.h).
  std::uint64_t flush_cost_bytes() const { return flush_cost_bytes_; }
  void set_flush_cost_bytes(std::uint64_t bytes) { flush_cost_bytes_ = bytes; }

  const std::vector<Piece>& pieces() const { return pieces_; }
  bool empty() const { return pieces_.empty(); }
  std::uint32_t end() const { return pieces_.empty() ? 0 : pieces_.back().end(); }
  std::uint64_t size() const { return size_; }  // bytes in all pieces

 private:
  void make_room(PlainBytes& bytes, std::size_t size) const;
  void write_pieces(std::uint32_t offset, ByteView bytes);
  void count() noexcept;

  PlainMemory* memory_;
  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
  std::uint64_t flush_cost_bytes_ = 0;
  bool is_punched_ = false;
};

}  // namespace nacre::fs
