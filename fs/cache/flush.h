// SPDX-License-Identifier: Apache-2.0
// One flush: takes dirty chunks of several files, seals them together, and puts their rows into the
// open group. Readers see the bytes at all times: first as dirty, then as being flushed, then
// through the rows.
//
// A chunk is stored in one of three ways. If the dirty bytes replace all its content, it becomes a
// new base record. If they are small and the row has room, they become patches (records, or inlined
// rows). Otherwise they are merged with the chunk's content into a new base. Lost bytes of a chunk
// stay lost unless they were written anew. A chunk that was punched in part loses the zeros at its
// end, and becomes a hole if nothing else is left.
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
  complete_chunks,  // chunks written in full, from the front of the file
  everything,
  everything_inline,  // all chunks, with patches as inlined rows instead of records
};

// Used by one thread. The flush mutexes of files are held from add() to the destructor. Files must
// be added in the order of their inode numbers, so that two flushes never wait for each other.
class Flush {
 public:
  // may_use_reserve allows the use of a full disk's reserve, for files that were renamed.
  Flush(FileCache& cache, FlushMode mode, bool may_use_reserve = false)
      : cache_(cache), mode_(mode), may_use_reserve_(may_use_reserve) {}
  ~Flush();

  bool is_empty() const { return files_.empty(); }
  bool is_full() const { return taken_bytes_ >= cache_.options().flush_size_bytes_max; }
  // Takes dirty chunks from first_chunk to last_chunk (inclusive) until the flush is full. Returns
  // the chunk to go on with; it is past last_chunk if there is none. Chunks before first_chunk that
  // lie past the map's end are taken, too, because the map grows without a gap.
  std::uint64_t add(std::shared_ptr<FileData> file, std::uint64_t first_chunk,
                    std::uint64_t last_chunk);
  // The same, but takes nothing if another flush has the file. Files may be added in any order.
  void try_add(std::shared_ptr<FileData> file, std::uint64_t first_chunk, std::uint64_t last_chunk);
  // Seals and installs the chunks that were taken. If a file fails, its bytes stay dirty. Returns
  // the first error.
  Result<> run();
  // Adds the files that failed. Called after run().
  void add_failures(FileFailures& failures) const;

 private:
  struct Seal {
    std::size_t request;  // index in requests_
    std::size_t patch;    // index of the row's patch that it becomes
  };
  // The requests that together hold a whole chunk.
  struct Whole {
    std::size_t first = 0, count = 0;
  };
  struct Inlined {
    std::string key;
    std::string bytes;
  };
  struct Chunk {
    std::uint64_t index = 0;
    bool is_new = false;   // the map ends at or before this chunk
    bool is_hole = false;  // it becomes a hole
    // The chunk's row in the map. No other thread changes it while the flush mutex is held.
    MappedChunk old{.hole = true};
    metadata::ChunkRow row;
    std::unique_ptr<Byte[]> buffer;  // holds a merged base
    Whole whole;
    std::vector<Seal> seals;
    std::vector<Inlined> inlined;
  };
  struct File {
    std::shared_ptr<FileData> data;
    std::unique_lock<FairMutex> flush_lock;
    std::uint64_t durable_size = 0;      // before the flush
    std::uint64_t new_durable_size = 0;  // after the flush
    std::vector<Chunk> chunks;
    Result<> outcome = {};
    bool is_open = true;  // its chunks are neither installed nor put back yet
  };

  // Takes chunks of a file whose flush mutex is held.
  std::uint64_t take(File file, std::uint64_t first_chunk, std::uint64_t last_chunk);
  // Only this flush changes flushing_, so it is read here without the lock.
  static const DirtyChunk& taken_chunk(const FileData& data,
                                       std::uint64_t index) NACRE_NO_THREAD_SAFETY_ANALYSIS;
  Result<> build(File& file, Chunk& chunk);
  // Returns false if the row has no room for the patches.
  Result<bool> build_patches(File& file, Chunk& chunk, const DirtyChunk& dirty,
                             const metadata::ChunkRow& old, bool inlined);
  // Returns false if there is nothing to free, or if the chunk cannot be read.
  bool build_punched(File& file, Chunk& chunk, const DirtyChunk& dirty, const MappedChunk& old);
  void build_whole(File& file, Chunk& chunk, ByteView plain);
  Result<> read_under(const File& file, const Chunk& chunk, const DirtyChunk& dirty,
                      const MappedChunk& old, MutableByteView out);
  Result<> merge(File& file, Chunk& chunk, const DirtyChunk& dirty, const MappedChunk& old);
  // Called with the file's locks held. mapped is the number of chunks with rows. It and change are
  // updated, even if this fails.
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
