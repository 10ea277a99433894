// SPDX-License-Identifier: Apache-2.0
// Reads one file: dirty bytes lie over those of the chunk map.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/cache/chunk_loader.h"
#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"
#include "fs/store/patched_chunk.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

namespace {

// After a row was read, it may be replaced or its record moved, and the segment may be removed
// before the record is read. Then the new row is read. If the same row fails this many times, it is
// damage.
constexpr int read_attempts_max = 3;
// The number of chunks that read-ahead loads together.
constexpr std::size_t prefetch_batch_chunks = 16;

void copy_content(const ChunkContent& content, std::uint32_t from, MutableByteView out) {
  const std::size_t inside =
      content.size() > from ? std::min<std::size_t>(content.size() - from, out.size()) : 0;
  std::copy_n(content.data() + from, inside, out.begin());
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(inside), out.end(), Byte{0});
}

// Checks that all bytes of [from, to) which the chunk's row calls lost lie under dirty bytes.
Result<> check_lost(InodeNumber inode, std::uint64_t index, const metadata::ChunkRow& row,
                    std::uint32_t from, std::uint32_t to,
                    const std::vector<std::pair<std::uint32_t, Bytes>>& over) {
  if (!is_lost(row, from, to)) return {};
  metadata::ChunkRow left{.base = {}, .patches = {}, .lost = row.lost};
  for (const auto& [at, bytes] : over)
    erase_lost(left, at, at + static_cast<std::uint32_t>(bytes.size()));
  if (!is_lost(left, from, to)) return {};
  return fail(ErrorCode::missing,
              fmt::format("inode {} chunk {}: bytes that are read here were lost, as a repair has "
                          "stated; what is written there anew can be read again",
                          inode.value, index));
}

// Checks that the content of a cached chunk has the size in its row.
void check_content(const metadata::ChunkRow& row, const ChunkContent& content) {
  NACRE_CHECK(content.size() == content_end(row), "a chunk of {} bytes has {}", content_end(row),
              content.size());
}

}  // namespace

struct FileData::Piece {
  std::uint64_t index = 0;
  std::uint32_t from = 0;  // within the chunk
  MutableByteView out;
  SharedContent content;   // holds all of it; null: it lies in out
  bool done = false;       // dirty bytes cover it
  bool is_mapped = false;  // the map has a row; false: zeros below the dirty bytes
  MappedChunk mapped;
  ChunkCache::Key key;                                // set if it is mapped and no hole
  std::optional<metadata::ChunkRow> part;             // the part of the row, if it is read alone
  std::vector<std::pair<std::uint32_t, Bytes>> over;  // dirty bytes, within the chunk, in order

  std::uint32_t end() const { return from + static_cast<std::uint32_t>(out.size()); }
};

Result<std::size_t> FileData::read(std::uint64_t offset, MutableByteView out) {
  NACRE_ASSIGN(const FileBytes bytes, view(offset, out));
  Byte* to = out.data();
  for (const ByteView& part : bytes.parts) {
    if (part.data() != to) std::copy_n(part.data(), part.size(), to);
    to += part.size();
  }
  return bytes.size;
}

Result<FileBytes> FileData::view(std::uint64_t offset, MutableByteView out) {
  const std::uint64_t size = size_;
  if (offset >= size || out.empty()) return FileBytes();
  out = out.first(std::min<std::uint64_t>(out.size(), size - offset));

  const auto ahead =
      read_ahead_.note_read(offset, out.size(), size, cache_.options().read_ahead_bytes_max);
  if (ahead.size > 0) cache_.want_read_ahead(shared_from_this(), ahead);

  std::vector<Piece> pieces;
  std::map<std::uint64_t, Failure> failures;  // by the chunk's index
  const auto is_last = [](const auto& entry) { return entry.second.count == read_attempts_max; };
  for (int attempt = 1;; ++attempt) {
    pieces.clear();
    const Result<> planned = plan(offset, out, pieces);
    if (!planned && attempt >= read_attempts_max) return tl::unexpected(planned.error());
    if (!planned) continue;
    for (const Piece& piece : pieces) {
      if (!piece.is_mapped || piece.mapped.hole) continue;
      NACRE_TRY(
          check_lost(inode_, piece.index, piece.mapped.row, piece.from, piece.end(), piece.over));
    }
    const Result<> loaded = load(pieces, failures);
    if (loaded) break;
    if (std::any_of(failures.begin(), failures.end(), is_last)) {
      return tl::unexpected(loaded.error());
    }
  }
  FileBytes result;
  for (Piece& piece : pieces) {
    for (const auto& [at, bytes] : piece.over) {
      const std::uint32_t from = std::max(at, piece.from);
      const std::uint32_t to = std::min(at + static_cast<std::uint32_t>(bytes.size()), piece.end());
      std::copy_n(bytes.begin() + (from - at), to - from, piece.out.begin() + (from - piece.from));
    }
    if (piece.content == nullptr) {
      result.add(piece.out);
    } else {
      result.add({piece.content->data() + piece.from, piece.out.size()});
      result.owners.push_back(std::move(piece.content));
    }
  }
  return result;
}

// Copies the dirty bytes of the range and looks up the rows of its other bytes, both under one
// shared lock.
Result<> FileData::plan(std::uint64_t offset, MutableByteView out, std::vector<Piece>& pieces) {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  SharedLock lock(mutex_);
  const std::uint64_t mapped_count = cache_.map().chunk_count(durable_size_);
  std::uint64_t first_needed = mapped_count;
  std::uint64_t last_needed = 0;
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t at = offset + done;
    Piece piece{.index = at / chunk_size, .from = static_cast<std::uint32_t>(at % chunk_size)};
    const std::size_t size = std::min<std::size_t>(out.size() - done, chunk_size - piece.from);
    piece.out = out.subspan(done, size);
    const std::uint32_t end = piece.end();
    const auto dirty = dirty_.find(piece.index);
    if (dirty != dirty_.end() && dirty->second.covers(piece.from, end)) {
      dirty->second.overlay(piece.from, piece.out);
      piece.done = true;
    } else {
      const auto keep = [&](const DirtyChunk& chunk) {
        for (const DirtyChunk::Piece& part : chunk.pieces()) {
          const std::uint32_t from = std::max(part.offset, piece.from);
          const std::uint32_t to = std::min(part.end(), end);
          if (from >= to) continue;
          piece.over.emplace_back(from, Bytes(part.bytes.data() + (from - part.offset),
                                              part.bytes.data() + (to - part.offset)));
        }
      };
      if (const auto place = flushing_.find(piece.index); place != flushing_.end()) {
        keep(place->second);
      }
      if (dirty != dirty_.end()) keep(dirty->second);
      piece.is_mapped = piece.index < mapped_count;
      if (piece.is_mapped) {
        first_needed = std::min(first_needed, piece.index);
        last_needed = piece.index;
      }
    }
    pieces.push_back(std::move(piece));
    done += size;
  }
  if (first_needed >= mapped_count) return {};
  NACRE_ASSIGN(auto mapped, cache_.map().find_range(inode_, ChunkIndex{first_needed},
                                                    last_needed - first_needed + 1));
  for (Piece& piece : pieces) {
    if (piece.is_mapped) piece.mapped = std::move(mapped[piece.index - first_needed]);
  }
  return {};
}

// If dirty bytes lie over the content, or zeros behind its end, the content is copied.
void FileData::give(Piece& piece, const SharedContent& content) {
  if (piece.over.empty() && piece.end() <= content->size()) {
    piece.content = content;
  } else {
    copy_content(*content, piece.from, piece.out);
  }
}

// Only loads of this thread count as failures. Loads of other threads may have begun with an older
// row.
Result<> FileData::load(std::vector<Piece>& pieces, std::map<std::uint64_t, Failure>& failures) {
  std::vector<ChunkToLoad> to_load;
  // A reader of a part alone claims no load.
  std::vector<std::pair<Piece*, std::shared_ptr<ChunkCache::Load>>> claimed, awaited;
  // A claimed load must be finished, so nothing may fail in between.
  to_load.reserve(pieces.size());
  claimed.reserve(pieces.size());
  awaited.reserve(pieces.size());
  for (Piece& piece : pieces) {
    if (piece.done) continue;
    if (!piece.is_mapped || piece.mapped.hole) {
      std::fill(piece.out.begin(), piece.out.end(), Byte{0});
      continue;
    }
    const ChunkIndex index{piece.index};
    piece.key = {inode_, index, ContentId(piece.mapped.row)};
    piece.part = row_of_range(piece.mapped.row, piece.from, piece.end());
    auto lookup = cache_.chunks().acquire(
        piece.key, piece.part ? ChunkCache::Need::part : ChunkCache::Need::chunk,
        {piece.from, piece.end()});
    if (lookup.content) {
      check_content(piece.mapped.row, *lookup.content);
      give(piece, lookup.content);
    } else if (lookup.claimed || !lookup.load) {
      if (lookup.claimed) {
        to_load.push_back(ChunkToLoad{inode_, index, &piece.mapped.row});
      } else {
        to_load.push_back(ChunkToLoad{inode_, index, &*piece.part, piece.from});
      }
      claimed.emplace_back(&piece, std::move(lookup.load));
    } else {
      awaited.emplace_back(&piece, std::move(lookup.load));
    }
  }
  Result<> outcome;
  if (!to_load.empty()) {
    auto loaded =
        load_chunks(cache_.database(), cache_.store(), cache_.chunk_size_bytes(), to_load);
    for (std::size_t i = 0; i < claimed.size(); ++i) {
      const auto& [piece, load] = claimed[i];
      if (load == nullptr) continue;  // a part is read alone
      if (loaded[i]) check_content(piece->mapped.row, **loaded[i]);
      cache_.chunks().finish(piece->key, load, loaded[i], {piece->from, piece->end()});
    }
    for (std::size_t i = 0; i < claimed.size(); ++i) {
      Piece* const piece = claimed[i].first;
      if (loaded[i]) {
        give(*piece, *loaded[i]);
      } else {
        outcome = tl::unexpected(loaded[i].error());
        Failure& failure = failures[piece->index];
        failure.count = failure.row == piece->mapped.row ? failure.count + 1 : 1;
        failure.row = piece->mapped.row;
      }
    }
  }
  for (const auto& [piece, load] : awaited) {
    auto content = cache_.chunks().wait(piece->key, *load, {piece->from, piece->end()});
    if (content) {
      give(*piece, *content);
    } else {
      outcome = tl::unexpected(content.error());
    }
  }
  return outcome;
}

void FileData::prefetch(std::uint64_t offset, std::uint64_t size) {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  std::uint64_t index = offset / chunk_size;
  const std::uint64_t end = (offset + size + chunk_size - 1) / chunk_size;
  while (index < end) {
    std::vector<MappedChunk> mapped;
    {
      SharedLock lock(mutex_);
      const std::uint64_t mapped_count = cache_.map().chunk_count(durable_size_);
      if (index >= mapped_count) return;
      auto found = cache_.map().find_range(
          inode_, ChunkIndex{index},
          std::min({std::uint64_t{prefetch_batch_chunks}, end - index, mapped_count - index}));
      if (!found) return;  // a reader of these bytes gets the error
      mapped = std::move(*found);
    }
    std::vector<ChunkToLoad> to_load;
    std::vector<std::pair<ChunkCache::Key, std::shared_ptr<ChunkCache::Load>>> claimed;
    to_load.reserve(mapped.size());  // nothing may fail once a load is claimed
    claimed.reserve(mapped.size());
    for (std::size_t i = 0; i < mapped.size(); ++i) {
      if (mapped[i].hole) continue;
      ChunkCache::Key key{inode_, ChunkIndex{index + i}, ContentId(mapped[i].row)};
      // The reader may be ahead already. Chunks that it has read stay spent.
      auto load = cache_.chunks().claim_ahead(key);
      if (load == nullptr) continue;
      to_load.push_back(ChunkToLoad{inode_, key.index, &mapped[i].row});
      claimed.emplace_back(std::move(key), std::move(load));
    }
    if (!to_load.empty()) {
      auto loaded = load_chunks(cache_.database(), cache_.store(), chunk_size, to_load);
      for (std::size_t i = 0; i < claimed.size(); ++i) {
        if (loaded[i]) check_content(*to_load[i].row, **loaded[i]);
        cache_.chunks().finish(claimed[i].first, claimed[i].second, std::move(loaded[i]), {});
      }
    }
    index += mapped.size();
  }
}

}  // namespace nacre::fs
