// SPDX-License-Identifier: Apache-2.0
#include "fs/cache/tidy_chunk.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fs/cache/chunk_loader.h"
#include "fs/cache/whole_chunk.h"
#include "fs/store/patched_chunk.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::RecordKind;

namespace {

using RowToSeal = FileData::RowToSeal;

// A row, and the sealed records that it names, with the pins that keep them.
struct Tidied {
  ChunkRow row;
  SealedBatch sealed;
};

// Seals under the versions that were drawn with the row. Records of a flush in the meantime then
// have higher versions, which a salvage without rows relies on.
Result<SealedBatch> seal(FileCache& cache, const RowToSeal& from,
                         std::vector<SealRequest>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    requests[i].name.version = from.versions.versions.at(i);
  return cache.store().append(requests);
}

Result<Tidied> merge(FileCache& cache, FileData& file, ChunkIndex index, const RowToSeal& from) {
  const ChunkRow& row = from.row;
  const InodeNumber inode = file.inode();
  const ChunkToLoad to_load{inode, index, &row};
  auto loaded = load_chunks(cache.database(), cache.store(), cache.chunk_size_bytes(),
                            std::span(&to_load, 1));
  NACRE_ASSIGN(const SharedContent content, std::move(loaded.front()));
  std::vector<SealRequest> requests;
  Tidied tidied;
  tidied.row = seal_whole(cache, file, index, *content, requests);
  NACRE_ASSIGN(tidied.sealed, seal(cache, from, requests));
  name_records(tidied.row, file, tidied.sealed.records);
  tidied.row.lost = row.lost;
  return tidied;
}

Result<Tidied> move_inlined(FileCache& cache, const FileData& file, ChunkIndex index,
                            const RowToSeal& from) {
  const ChunkRow& row = from.row;
  const InodeNumber inode = file.inode();
  std::vector<std::string> bytes;
  bytes.reserve(row.patches.size());  // the requests point into them
  std::vector<SealRequest> requests;
  for (const ChunkPatch& patch : row.patches) {
    if (patch.location) continue;
    NACRE_ASSIGN(auto value, cache.database().get(
                                 metadata::Table::inlined,
                                 metadata::inlined_key(inode, index, patch.version, patch.offset)));
    if (!value || value->size() != patch.plain_size) {
      return fail(value ? ErrorCode::corrupt : ErrorCode::missing,
                  fmt::format("inlined bytes of chunk {} of inode {}", index.value, inode.value));
    }
    bytes.push_back(std::move(*value));
    requests.push_back(SealRequest{RecordName{inode, index, {}, patch.offset, RecordKind::patch},
                                   as_bytes(bytes.back()), file.codec()});
  }
  Tidied tidied{.row = row, .sealed = {}};
  NACRE_ASSIGN(tidied.sealed, seal(cache, from, requests));
  auto record = tidied.sealed.records.begin();
  for (ChunkPatch& patch : tidied.row.patches) {
    if (patch.location) continue;
    patch.location = record->location;
    patch.version = record->version;
    ++record;
  }
  return tidied;
}

// Whether inlined bytes lie under a later patch that is a record. As a record of their own they
// would have the higher version. Without the row, a salvage lays records in the order of versions,
// and would lay them over the later patch. So they are merged into one record.
bool is_inlined_under_record(const ChunkRow& row) {
  for (auto patch = row.patches.begin(); patch != row.patches.end(); ++patch) {
    if (patch->location) continue;
    const auto covers = [&](const ChunkPatch& later) {
      return later.location && later.offset < patch->offset + patch->plain_size &&
             patch->offset < later.offset + later.plain_size;
    };
    if (std::any_of(patch + 1, row.patches.end(), covers)) return true;
  }
  return false;
}

bool is_to_be_merged(const ChunkRow& row) {
  return is_worth_merging(row) || is_inlined_under_record(row);
}

// The maximum number of records that tidying the row seals; 0: the row is tidy.
std::size_t count_records(const ChunkRow& row) {
  if (is_to_be_merged(row)) return part_count_max;
  return static_cast<std::size_t>(
      std::count_if(row.patches.begin(), row.patches.end(),
                    [](const ChunkPatch& patch) { return !patch.location; }));
}

}  // namespace

Result<bool> tidy_chunk(FileCache& cache, FileData& file, ChunkIndex index) {
  NACRE_ASSIGN(const auto from, file.row_to_seal(index, count_records));
  if (!from) return false;
  const ChunkRow& row = from->row;
  NACRE_ASSIGN(const Tidied tidied, is_to_be_merged(row) ? merge(cache, file, index, *from)
                                                         : move_inlined(cache, file, index, *from));
  const std::string expected = metadata::encode(row);
  const RowChange change{.index = index,
                         .apply = [&](const ChunkRow& current) -> std::optional<ChunkRow> {
                           if (metadata::encode(current) != expected) return std::nullopt;
                           return tidied.row;
                         }};
  NACRE_ASSIGN(const std::size_t changed, file.change_rows(std::span(&change, 1)));
  return changed > 0;
}

}  // namespace nacre::fs
