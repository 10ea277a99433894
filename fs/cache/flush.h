// SPDX-License-Identifier: Apache-2.0
// One flush: takes dirty chunks of several files, seals them in one go, and puts their rows into
// the open group. Readers see the bytes all the while: first as dirty, then as being flushed, then
// through the rows.
//
// How a chunk is stored: whole as a new base record when the dirty bytes replace all that it held;
// else small pieces as patches (records, or inlined rows), as long as the row has room for them;
// else merged with what the chunk holds into a new base. What was lost of a chunk stays lost but
// for the bytes that were written anew. A chunk that was punched in part loses the zeros at its
// end, and becomes a hole where there is nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

enum class FlushMode : std::uint8_t {
  complete_chunks,  // those written in full, from the front: streaming
  everything,
  everything_inline,  // everything, patches as inlined rows instead of records
};

// Used by one thread. The files' flush mutexes are held from add() to the destructor: add files in
// the order of their inode numbers, so that two flushes never wait for each other in a circle.
class Flush {
 public:
  // may_use_reserve: of a full disk, for files whose names have moved.
  Flush(FileCache& cache, FlushMode mode, bool may_use_reserve = false)
      : cache_(cache), mode_(mode), may_use_reserve_(may_use_reserve) {}
  ~Flush();

  bool is_empty() const { return files_.empty(); }
  bool is_full() const { return taken_bytes_ >= cache_.options().flush_size_bytes_max; }
  // Takes dirty chunks from first_chunk to last_chunk (included) until the flush is full; returns
  // the chunk to go on with, past last_chunk when there is none. Those before first_chunk that lie
  // past the map's end are taken as well: the map grows without a gap.
  std::uint64_t add(std::shared_ptr<FileData> file, std::uint64_t first_chunk,
                    std::uint64_t last_chunk);
  // The same, but nothing where another flush has the file: so in any order.
  void try_add(std::shared_ptr<FileData> file, std::uint64_t first_chunk, std::uint64_t last_chunk);
  // Seals and installs what was taken. Files that fail keep their bytes dirty; the first such error
  // is returned.
  Result<> run();
  // After run(): adds the files that failed.
  void add_failures(FileFailures& failures) const;

 private:
  struct Seal {
    std::size_t request;  // its index in requests_
    std::size_t patch;    // the row's patch that it becomes
  };
  // Requests that are all of a chunk.
  struct Whole {
    std::size_t first = 0, count = 0;
  };
  struct Inlined {
    std::string key;
    std::string bytes;
  };
  struct Chunk {
    std::uint64_t index = 0;
    bool is_new = false;   // the map ends at or before it
    bool is_hole = false;  // from now on
    // What the map says of it: nobody else changes that while the flush mutex is held.
    MappedChunk old{.hole = true};
    metadata::ChunkRow row;
    std::unique_ptr<Byte[]> buffer;  // of a merged base
    Whole whole;
    std::vector<Seal> seals;
    std::vector<Inlined> inlined;
  };
  struct File {
    std::shared_ptr<FileData> data;
    std::unique_lock<FairMutex> flush_lock;
    std::uint64_t durable_size = 0;      // before
    std::uint64_t new_durable_size = 0;  // after
    std::vector<Chunk> chunks;
    Result<> outcome = {};
    bool is_open = true;  // neither installed nor put back yet
  };

  // Of a file whose flush mutex is held.
  std::uint64_t take(File file, std::uint64_t first_chunk, std::uint64_t last_chunk);
  Result<> build(File& file, Chunk& chunk);
  // False: the row has no room for them.
  Result<bool> build_patches(File& file, Chunk& chunk, const DirtyChunk& dirty,
                             const metadata::ChunkRow& old, bool inlined);
  // False: there is nothing to give back, or the chunk cannot be read.
  bool build_punched(File& file, Chunk& chunk, const DirtyChunk& dirty, const MappedChunk& old);
  void build_whole(File& file, Chunk& chunk, ByteView plain);
  Result<> read_under(const File& file, const Chunk& chunk, const DirtyChunk& dirty,
                      const MappedChunk& old, MutableByteView out);
  Result<> merge(File& file, Chunk& chunk, const DirtyChunk& dirty, const MappedChunk& old);
  // Under the file's locks. mapped: chunks from there on have no row; moved along, and with it
  // change, also when it fails.
  Result<> put_rows(File& file, std::uint64_t& mapped, std::int64_t& change);
  Result<> install(File& file);
  void put_back(File& file);

  FileCache& cache_;
  const FlushMode mode_;
  const bool may_use_reserve_;
  std::vector<File> files_;
  std::vector<SealRequest> requests_;
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace nacre::fs
