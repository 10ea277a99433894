// SPDX-License-Identifier: Apache-2.0
// Types that the parts of the structure check share; private to structure_*.cpp and *_rows.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "fs/check/structure_check.h"

namespace nacre::fs {

// The values of the system table that could be read.
struct SystemFacts {
  std::optional<std::uint64_t> next_inode, next_segment, next_session, inode_count, data_bytes;
  std::optional<std::array<Byte, 16>> name_hash_key;
  std::map<engine::SessionSalt, metadata::SessionRow> sessions;
  // The write session of each ordinal. Record versions contain the ordinal.
  std::map<std::uint64_t, engine::SessionSalt> session_by_ordinal;
};

// One inode: the values of its row, and counts of the rows that name it.
struct InodeFacts {
  std::uint64_t number = 0;
  std::uint64_t size = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t parent = 0;
  std::uint32_t mode = 0;
  std::uint32_t link_count = 0;
  std::uint32_t name_count = 0;          // dentries that name it
  std::uint32_t subdirectory_count = 0;  // dentries in it that name directories
  std::uint64_t entry_count = 0;         // dentries in it
  bool is_orphan = false;
  bool is_reached = false;

  bool is_directory() const { return (mode & 0170000) == 0040000; }
  bool is_regular() const { return (mode & 0170000) == 0100000; }
};

// Sorted by number.
class InodeFactsTable {
 public:
  void append(const InodeFacts& facts) { facts_.push_back(facts); }  // in order
  // Null if there is no such inode. The pointer is valid until the next append().
  InodeFacts* find(metadata::InodeNumber number);
  std::vector<InodeFacts>& all() { return facts_; }

 private:
  std::vector<InodeFacts> facts_;
};

// One check of all rows against each other and against the segment files. What it finds goes to the
// context's findings; an error means that the check itself could not go on (io, out_of_memory).
// Needs memory for each inode and each inlined row. Not thread-safe; run() is called once, and the
// context outlives the object.
class StructureCheck {
 public:
  explicit StructureCheck(const StructureContext& context) : context_(context) {}
  Result<StructureCounts> run();

 private:
  // Each part reads some tables. The parts are in system_rows.cpp, name_rows.cpp, chunk_rows.cpp
  // and segment_rows.cpp.
  Result<> read_system();
  Result<> check_system();
  Result<> read_inodes();
  Result<> read_dentries();
  Result<> read_orphans();
  Result<> read_xattrs();
  void check_names();
  void check_reachability();
  Result<> read_chunks();
  Result<> read_inlined();
  Result<> check_segments();

  void problem(Verdict verdict, std::string what,
               std::optional<metadata::InodeNumber> inode = std::nullopt);
  void wrong(std::string what, std::optional<metadata::InodeNumber> inode = std::nullopt) {
    problem(Verdict::structure, std::move(what), inode);
  }
  void undecodable(metadata::Table table, std::string_view key, const Error& error);
  // Scans a whole table, counts its rows and reports progress.
  Result<> scan(metadata::Table table,
                const std::function<void(std::string_view key, std::string_view value)>& visit);
  void check_version(metadata::RecordVersion version, metadata::InodeNumber inode,
                     std::string_view what);

  struct FileState;
  void begin_file(FileState& file, metadata::InodeNumber inode);
  void finish_file(const FileState& file);
  void check_lost_row(FileState& file, std::uint64_t index, std::uint64_t count);
  void note_lost(FileState& file, std::uint64_t chunk_count, std::uint64_t bytes);
  void check_chunk_row(FileState& file, metadata::ChunkIndex index, const metadata::ChunkRow& row);

  void check_segment_files(const std::map<metadata::SegmentNumber, metadata::SegmentRow>& rows);
  std::optional<metadata::SegmentNumber> arriving_segment_of(
      std::string_view name, const std::map<metadata::SegmentNumber, metadata::SegmentRow>& rows);
  void check_segment_header(metadata::SegmentNumber number, const metadata::SegmentRow& row);
  void check_unknown_segment(metadata::SegmentNumber number);

  const StructureContext& context_;
  StructureCounts counts_;
  SystemFacts system_;
  InodeFactsTable inodes_;
  // The key and size of inlined bytes that patches name. There are few, because each commit moves
  // older ones to segments.
  std::map<std::string, std::uint32_t> inlined_;
  std::uint64_t segment_number_max_ = 0;
};

}  // namespace nacre::fs
