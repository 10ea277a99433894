// SPDX-License-Identifier: Apache-2.0
// See memory_file.h and, for the model, memory_backing.h.
#include "tests/support/memory_file.h"

#include <algorithm>

namespace nacre::tests {

namespace {

constexpr std::uint64_t sector_size_bytes = 512;

bool flip_coin(std::mt19937_64& random) {
  return (random() & 1) != 0;
}

}  // namespace

void MemoryFile::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  now_.write(offset, bytes);
  changes_.push_back({.offset = offset,
                      .touched_end = offset + bytes.size(),
                      .touched_begin = offset,
                      .bytes = Bytes(bytes.begin(), bytes.end())});
}

void MemoryFile::truncate(std::uint64_t size) {
  const std::uint64_t before = now_.size();
  if (size == before) return;
  now_.resize(size);
  changes_.push_back({.is_truncation = true,
                      .offset = size,
                      .touched_end = std::max(before, size),
                      .touched_begin = std::min(before, size),
                      .bytes = {}});
}

void MemoryFile::sync() {
  bool doubtful = false;
  for (Change& change : changes_) {
    if (change.fate == Fate::pending) change.fate = Fate::certain;
    doubtful = doubtful || change.fate == Fate::doubtful;
  }
  if (doubtful) return;
  durable_.resize(now_.size());
  for (const Change& change : changes_) {
    durable_.take_pages(now_, change.touched_begin, change.touched_end);
  }
  changes_.clear();
}

void MemoryFile::fail_sync() {
  for (Change& change : changes_) {
    if (change.fate == Fate::pending) change.fate = Fate::doubtful;
  }
}

void MemoryFile::apply(SparseBytes& content, const Change& change) {
  if (change.is_truncation) {
    content.resize(change.offset);
  } else {
    content.write(change.offset, change.bytes);
  }
}

void MemoryFile::apply_torn(SparseBytes& content, const Change& change, std::mt19937_64& random) {
  const ByteView bytes = change.bytes;
  const std::uint64_t end = change.offset + bytes.size();
  // Torn writes have two shapes: all sectors up to some place, as when a write is cut off, or
  // single sectors anywhere.
  const bool is_prefix = flip_coin(random);
  const std::uint64_t cut = change.offset + random() % bytes.size();
  for (std::uint64_t at = change.offset; at < end;) {
    const std::uint64_t next = std::min(end, (at / sector_size_bytes + 1) * sector_size_bytes);
    const bool keep = is_prefix ? next <= cut : flip_coin(random);
    if (keep) content.write(at, bytes.subspan(at - change.offset, next - at));
    at = next;
  }
  // The size may have reached the medium without the data.
  if (content.size() < end && flip_coin(random)) content.resize(end);
}

SparseBytes MemoryFile::survive(Survival survival, std::mt19937_64& random) {
  if (survival == Survival::everything) return now_.share();
  SparseBytes content = durable_.share();
  for (const Change& change : changes_) {
    if (change.fate == Fate::certain) {
      apply(content, change);
    } else if (survival == Survival::random) {
      switch (random() % 3) {
        case 0:
          break;
        case 1:
          apply(content, change);
          break;
        default:
          if (!change.is_truncation) apply_torn(content, change, random);
          break;
      }
    }
  }
  return content;
}

}  // namespace nacre::tests
