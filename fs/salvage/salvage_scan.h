// SPDX-License-Identifier: Apache-2.0
// Every record that lies in a volume's segments and authenticates, found without db/: by walking
// the files and opening what is there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fs/check/finding.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/format/rows.h"
#include "metadata/keys/keys.h"

namespace nacre::fs {

// 64 bytes each, all of a volume's in memory.
struct FoundRecord {
  metadata::RecordVersion version;
  metadata::InodeNumber inode;
  metadata::ChunkIndex chunk;
  std::uint64_t offset = 0;   // within its file
  std::uint64_t segment = 0;  // in the new volume, once it was copied there; 0: not
  std::uint32_t file = 0;     // index into FoundRecords::files
  std::uint32_t session = 0;  // index into FoundRecords::sessions
  std::uint32_t stored_size = 0;
  std::uint32_t plain_size = 0;
  std::uint32_t patch_offset = 0;
  metadata::RecordKind kind = metadata::RecordKind::chunk;
  bool is_named = false;  // by the rows that are salvaged

  metadata::RecordName name() const {
    return {
        .inode = inode, .chunk = chunk, .version = version, .offset = patch_offset, .kind = kind};
  }
};

struct FoundRecords {
  std::vector<FoundRecord> all;  // by version
  std::vector<std::string> files;
  std::vector<engine::SessionSalt> sessions;  // that sealed them
  std::uint64_t segment_number_max = 0;
  std::uint64_t inode_max = 0;
  std::uint64_t session_ordinal_max = 0;
  std::uint64_t scanned_bytes = 0;
  std::uint64_t damaged_count = 0;  // places without a good record, and records without a right tag

  // Behind the last good record of a file: torn when power went, or damaged.
  std::uint64_t tail_bytes = 0;

  // Those with this version: copies of one record, but for what other branches of a volume's
  // history left.
  std::span<FoundRecord> with_version(metadata::RecordVersion version);
};

// Damage is a note: nobody knows yet whether rows name what was there. What the medium does not
// read is an error. Errors: out_of_memory; io of the folder.
Result<FoundRecords> scan_records(metadata::BackingDirectory& directory,
                                  const metadata::KeyTree& keys, engine::Engine& engine,
                                  std::uint32_t chunk_size_bytes, FindingList& findings,
                                  const ProgressFunction& progress);

// Reads and opens one record again. Not thread-safe. Errors: corrupt, tampered, io.
class RecordOpener {
 public:
  RecordOpener(metadata::BackingDirectory& directory, const metadata::KeyTree& keys,
               engine::Engine& engine, const FoundRecords& records)
      : directory_(directory), keys_(keys), engine_(engine), records_(records) {}

  // The sealed bytes, with a right CRC.
  Result<Bytes> read(const FoundRecord& record);
  // Its plain bytes; it is the very record.
  Result<Bytes> open(const FoundRecord& record);

 private:
  metadata::BackingDirectory& directory_;
  const metadata::KeyTree& keys_;
  engine::Engine& engine_;
  const FoundRecords& records_;
  std::uint32_t open_file_ = ~0u;
  std::unique_ptr<metadata::BackingFile> file_;
};

}  // namespace nacre::fs
