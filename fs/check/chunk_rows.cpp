// SPDX-License-Identifier: Apache-2.0
// The structure check of the tables chunks and inlined: exactly one row covers each chunk below a
// file's size, and no row lies beyond it.
#include <algorithm>

#include <fmt/format.h>

#include "fs/check/structure_parts.h"
#include "fs/store/chunk_map.h"

namespace nacre::fs {

using metadata::ChunkIndex;
using metadata::ChunkRow;
using metadata::InodeNumber;
using metadata::Table;

// The file whose rows are being read; rows of one file follow each other.
struct StructureCheck::FileState {
  const InodeFacts* inode = nullptr;
  InodeNumber number{0};
  std::uint64_t chunk_count = 0;  // as the file's size gives it
  std::uint64_t next_index = 0;   // the first chunk that no row has covered so far
  std::uint64_t data_bytes = 0;
  std::uint64_t lost_chunks = 0;
  std::uint64_t lost_bytes = 0;
};

void StructureCheck::begin_file(FileState& file, InodeNumber number) {
  file = FileState{.inode = inodes_.find(number), .number = number};
  if (file.inode == nullptr) {
    wrong(fmt::format("chunks belong to inode {}, which does not exist", number.value));
  } else if (!file.inode->is_regular() && file.inode->mode != 0) {
    wrong(fmt::format("chunks belong to inode {}, which is no regular file", number.value), number);
  } else {
    const std::uint64_t chunk_size = context_.chunk_size_bytes;
    file.chunk_count = file.inode->size / chunk_size + (file.inode->size % chunk_size != 0);
  }
}

void StructureCheck::finish_file(const FileState& file) {
  if (file.inode == nullptr || !file.inode->is_regular()) return;
  if (file.lost_bytes != 0) {
    context_.findings.add(
        {.severity = Severity::note,
         .verdict = Verdict::missing,
         .what = fmt::format("{} bytes in {} chunks of inode {} are lost, as a repair has stated: "
                             "reading them fails",
                             file.lost_bytes, file.lost_chunks, file.number.value),
         .inode = file.number});
  }
  // If the volume stopped while an orphan was being erased, rows at the orphan's start are gone.
  if (file.inode->is_orphan) return;
  if (file.next_index < file.chunk_count) {
    problem(Verdict::missing,
            fmt::format("no row covers the chunks {} to {} of inode {}", file.next_index,
                        file.chunk_count - 1, file.number.value),
            file.number);
  }
  if (file.inode->data_bytes != file.data_bytes) {
    wrong(fmt::format("inode {} counts {} bytes of data, its rows hold {}", file.number.value,
                      file.inode->data_bytes, file.data_bytes),
          file.number);
  }
}

Result<> StructureCheck::read_chunks() {
  FileState file;
  std::vector<std::uint64_t> with_rows;
  NACRE_TRY(scan(Table::chunks, [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_chunk_key(key);
    if (!parts) return undecodable(Table::chunks, key, parts.error());
    ++counts_.chunk_row_count;
    if (parts->inode != file.number) {
      finish_file(file);
      begin_file(file, parts->inode);
      with_rows.push_back(parts->inode.value);
    }
    const std::uint64_t index = parts->index.value;
    const auto row = metadata::decode_chunk_map_row(value);
    std::uint64_t count = 1;
    if (!row) {
      problem(verdict_of(row.error().code),
              fmt::format("the row of chunk {} of inode {}: {}", index, file.number.value,
                          row.error().message),
              file.number);
    } else if (row->hole) {
      count = row->hole->chunk_count;
    } else if (row->lost) {
      count = row->lost->chunk_count;
      check_lost_row(file, index, count);
    } else {
      check_chunk_row(file, parts->index, *row->chunk);
    }
    if (index < file.next_index) {
      wrong(fmt::format("two rows cover chunk {} of inode {}", index, file.number.value),
            file.number);
    } else if (index > file.next_index && file.inode != nullptr && !file.inode->is_orphan) {
      problem(Verdict::missing,
              fmt::format("no row covers the chunks {} to {} of inode {}", file.next_index,
                          index - 1, file.number.value),
              file.number);
    }
    const bool overflows = count > ~index;
    if (overflows || index + count > file.chunk_count) {
      wrong(fmt::format("a row covers chunks {} to {} of inode {}, which has {}", index,
                        overflows ? ~0ull : index + count - 1, file.number.value, file.chunk_count),
            file.number);
    }
    file.next_index = std::max<std::uint64_t>(file.next_index, overflows ? ~0ull : index + count);
  }));
  finish_file(file);
  for (const auto& inode : inodes_.all()) {
    if (!inode.is_regular()) continue;
    counts_.data_bytes += inode.data_bytes;
    if (inode.size == 0 && inode.data_bytes == 0) continue;
    if (std::binary_search(with_rows.begin(), with_rows.end(), inode.number)) continue;
    FileState without;
    begin_file(without, InodeNumber{inode.number});
    finish_file(without);
  }
  return {};
}

// A row of lost chunks names whole chunks. Only the last chunk of a file may be shorter.
void StructureCheck::check_lost_row(FileState& file, std::uint64_t index, std::uint64_t count) {
  const std::uint64_t size = file.inode == nullptr ? 0 : file.inode->size;
  const std::uint64_t whole_count = size / context_.chunk_size_bytes;
  if (file.inode != nullptr && (index > whole_count || count > whole_count - index)) {
    wrong(fmt::format("inode {}: a row says that the {} chunks from {} on are lost, which is past "
                      "the end of the file",
                      file.number.value, count, index),
          file.number);
    return;
  }
  file.data_bytes += count * context_.chunk_size_bytes;
  note_lost(file, count, count * context_.chunk_size_bytes);
}

void StructureCheck::note_lost(FileState& file, std::uint64_t chunk_count, std::uint64_t bytes) {
  counts_.lost_bytes += bytes;
  file.lost_chunks += chunk_count;
  file.lost_bytes += bytes;
}

void StructureCheck::check_chunk_row(FileState& file, ChunkIndex index, const ChunkRow& row) {
  const InodeNumber inode = file.number;
  const auto what = [&] { return fmt::format("chunk {} of inode {}", index.value, inode.value); };
  const std::uint64_t begin = index.value * context_.chunk_size_bytes;
  const std::uint32_t chunk_size = context_.chunk_size_bytes;
  // The number of the chunk's bytes below the file's end.
  const std::uint64_t room = file.inode == nullptr || file.inode->size <= begin
                                 ? 0
                                 : std::min<std::uint64_t>(chunk_size, file.inode->size - begin);
  const std::uint32_t end = content_end(row);
  file.data_bytes += end;
  std::uint64_t lost_bytes = 0;
  for (const auto& range : row.lost)
    lost_bytes += range.size;
  if (lost_bytes != 0) note_lost(file, 1, lost_bytes);
  if (end > room && file.inode != nullptr && index.value < file.chunk_count) {
    wrong(fmt::format("{} holds {} bytes, but the file ends after {} of them", what(), end, room),
          inode);
  }
  if (row.base) {
    check_version(row.base->version, inode, what());
    if (row.base->plain_size > chunk_size) {
      wrong(fmt::format("{} has a base of {} bytes", what(), row.base->plain_size), inode);
    }
  }
  for (const auto& patch : row.patches) {
    check_version(patch.version, inode, what());
    if (patch.offset > chunk_size || patch.plain_size > chunk_size - patch.offset) {
      wrong(fmt::format("{} has a patch at {} of {} bytes", what(), patch.offset, patch.plain_size),
            inode);
    }
    if (patch.location) continue;
    auto key = metadata::inlined_key(inode, index, patch.version, patch.offset);
    if (!inlined_.emplace(std::move(key), patch.plain_size).second) {
      wrong(fmt::format("{} names the same inlined bytes twice", what()), inode);
    }
  }
}

Result<> StructureCheck::read_inlined() {
  const auto inode_of = [](std::string_view key) -> std::optional<InodeNumber> {
    const auto parts = metadata::decode_inlined_key(key);
    return parts ? std::optional(parts->inode) : std::nullopt;
  };
  NACRE_TRY(scan(Table::inlined, [&](std::string_view key, std::string_view value) {
    const auto named = inlined_.find(std::string(key));
    if (named == inlined_.end()) {
      wrong("inlined bytes that no chunk row names", inode_of(key));
      return;
    }
    if (value.size() != named->second) {
      wrong(fmt::format("a patch of {} bytes has {} inlined bytes", named->second, value.size()),
            inode_of(key));
    }
    inlined_.erase(named);
  }));
  for (const auto& [key, size] : inlined_) {
    problem(Verdict::missing, fmt::format("the {} inlined bytes of a patch are not there", size),
            inode_of(key));
  }
  return {};
}

}  // namespace nacre::fs
