// SPDX-License-Identifier: Apache-2.0
#include "fs/salvage/salvage_checkpoint.h"

#include <algorithm>

#include <fmt/format.h>

namespace nacre::fs {

using metadata::CheckpointNumber;
using metadata::CheckpointSection;
using metadata::RecordKind;

namespace {

Result<const FoundRecord*> find_part(FoundRecords& records, CheckpointNumber number,
                                     std::uint64_t place,
                                     const metadata::CheckpointRoot::Part& part) {
  const auto name = metadata::part_name(number, place, part.version);
  for (const FoundRecord& record : records.with_version(part.version)) {
    if (record.name() == name && record.plain_size == part.plain_size) return &record;
  }
  return fail(ErrorCode::missing, fmt::format("its part {} is missing or damaged", place));
}

Result<FoundCheckpoint> load(FoundRecords& records, RecordOpener& opener,
                             const FoundRecord& root_record) {
  FoundCheckpoint found{.number = {root_record.inode.value}};
  NACRE_ASSIGN(const Bytes plain, opener.open(root_record));
  NACRE_ASSIGN(found.root, metadata::decode_checkpoint_root(as_text(plain)));
  for (std::size_t i = 0; i < found.root.parts.size(); ++i) {
    NACRE_ASSIGN(const FoundRecord* part, find_part(records, found.number, i, found.root.parts[i]));
    found.parts.push_back(part);
  }
  // All parts are read once before any of their rows is used.
  NACRE_TRY(found.read(
      opener,
      [&](CheckpointSection section, std::string_view key, std::string_view value) -> Result<> {
        if (section == CheckpointSection::system) found.system_rows.emplace(key, value);
        return {};
      }));
  return found;
}

}  // namespace

Result<> FoundCheckpoint::read(RecordOpener& opener, const metadata::VisitRow& visit) const {
  return metadata::read_checkpoint(
      root, [&](std::size_t part) { return opener.open(*parts[part]); }, visit);
}

Result<std::optional<FoundCheckpoint>> find_checkpoint(FoundRecords& records, RecordOpener& opener,
                                                       FindingList& findings) {
  // The newest comes first, because numbers are versions. If a root is damaged, only the parts of
  // its
  // checkpoint are found.
  std::map<CheckpointNumber, const FoundRecord*, std::greater<>> roots;
  for (const FoundRecord& record : records.all) {
    if (is_of_file(record.kind)) continue;
    auto& root = roots[{record.inode.value}];
    if (record.kind == RecordKind::checkpoint_root) root = &record;
  }
  for (const auto& [number, root] : roots) {
    if (root == nullptr && records.damaged_count == 0 && records.tail_bytes == 0) {
      // A checkpoint's root is written last.
      findings.add({.severity = Severity::note,
                    .what = fmt::format("checkpoint {:#x} was still being written", number.value)});
      continue;
    }
    auto loaded = root != nullptr ? load(records, opener, *root)
                                  : fail(ErrorCode::missing,
                                         "its root is missing or damaged, or was never written");
    if (loaded) return std::optional(std::move(*loaded));
    if (loaded.error().code == ErrorCode::out_of_memory) return tl::unexpected(loaded.error());
    findings.add({.verdict = verdict_of(loaded.error().code),
                  .what = fmt::format("checkpoint {:#x} is not whole: {}; the one before it counts",
                                      number.value, loaded.error().message)});
  }
  return std::optional<FoundCheckpoint>();
}

}  // namespace nacre::fs
