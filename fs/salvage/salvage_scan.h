// SPDX-License-Identifier: Apache-2.0
// Finds, without db/, every genuine record in a volume's segments, by walking the files and opening
// each record.
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

// It takes 64 bytes; those of all records of a volume are in memory together.
struct FoundRecord {
  metadata::RecordVersion version;
  metadata::InodeNumber inode;
  metadata::ChunkIndex chunk;
  std::uint64_t offset = 0;   // within its file
  std::uint64_t segment = 0;  // in the new volume; 0: not copied yet
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
  std::vector<engine::SessionSalt> sessions;  // the write sessions that sealed the records
  std::vector<std::uint32_t> session_epochs;  // the key epoch of each of them
  std::uint64_t segment_number_max = 0;
  std::uint64_t inode_max = 0;
  std::uint64_t session_ordinal_max = 0;
  std::uint64_t scanned_bytes = 0;
  std::uint64_t damaged_count = 0;  // places without a whole record, and records with a wrong tag

  // Bytes behind the last whole record of each file: torn by a power loss, or damaged.
  std::uint64_t tail_bytes = 0;

  // The records with this version. They are copies of one record, unless another branch of the
  // volume's history used the same version.
  std::span<FoundRecord> with_version(metadata::RecordVersion version);
};

// Damage gives a note among the findings, because it is not known yet whether rows name what was
// there. Bytes that the medium cannot read give an error among them. Errors: out_of_memory; io if
// the folder cannot be read.
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

  // Returns the sealed bytes, whose CRC is right.
  Result<Bytes> read(const FoundRecord& record);
  // Returns the plain bytes of exactly this record.
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
