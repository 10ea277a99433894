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
                                     std::uint32_t session, std::uint64_t place,
                                     const metadata::CheckpointRoot::Part& part) {
  const auto name = metadata::part_name(number, place, part.version);
  const FoundRecord* found = nullptr;
  for (const FoundRecord& record : records.with_version(part.version)) {
    if (record.name() != name || record.plain_size != part.plain_size) continue;
    // Another history may have used the same numbers, but not the same session.
    if (record.session == session) return &record;
    if (found == nullptr) found = &record;
  }
  if (found != nullptr) return found;
  return fail(ErrorCode::missing,
              fmt::format("part {} of the checkpoint is missing or damaged", place));
}

// The newest session that a checkpoint knows is the one that wrote it.
std::uint64_t checkpoint_ordinal(const std::map<std::uint64_t, std::uint32_t>& epochs) {
  return epochs.empty() ? 0 : epochs.rbegin()->first;
}

Result<FoundCheckpoint> load(FoundRecords& records, RecordOpener& opener,
                             const FoundRecord& root_record) {
  FoundCheckpoint found{.number = {root_record.inode.value}, .session = root_record.session};
  NACRE_ASSIGN(const Bytes plain, opener.open(root_record));
  NACRE_ASSIGN(found.root, metadata::decode_checkpoint_root(as_text(plain)));
  for (std::size_t i = 0; i < found.root.parts.size(); ++i) {
    NACRE_ASSIGN(const FoundRecord* part,
                 find_part(records, found.number, found.session, i, found.root.parts[i]));
    found.parts.push_back(part);
  }
  // All parts are read once before any of their rows is used.
  NACRE_TRY(found.read(
      opener,
      [&](CheckpointSection section, std::string_view key, std::string_view value) -> Result<> {
        if (section == CheckpointSection::system) found.system_rows.emplace(key, value);
        return {};
      }));
  // A session may end within a checkpoint, and another one goes on.
  for (const FoundRecord* part : found.parts) {
    const bool is_own =
        part->session == found.session ||
        found.system_rows.contains(metadata::session_key_of(records.sessions[part->session]));
    if (!is_own) return fail(ErrorCode::missing, "a part of the checkpoint is of another history");
  }
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
  // its checkpoint are found.
  using Place = std::tuple<std::uint32_t, CheckpointNumber, std::uint32_t>;  // epoch, …, session
  std::map<Place, const FoundRecord*, std::greater<>> roots;
  for (const FoundRecord& record : records.all) {
    if (is_of_file(record.kind)) continue;
    auto& root = roots[{records.session_epochs[record.session],
                        CheckpointNumber{record.inode.value}, record.session}];
    if (record.kind == RecordKind::checkpoint_root) root = &record;
  }
  for (const auto& [place, root] : roots) {
    const CheckpointNumber number = std::get<CheckpointNumber>(place);
    if (root == nullptr && records.damaged_count == 0 && records.tail_bytes == 0) {
      // A checkpoint's root is written last.
      findings.add({.severity = Severity::note,
                    .what = fmt::format("checkpoint {:#x} was still being written", number.value)});
      continue;
    }
    auto loaded =
        root != nullptr
            ? load(records, opener, *root)
            : fail(ErrorCode::missing,
                   "the root of the checkpoint is missing or damaged, or was never written");
    if (loaded) return std::optional(std::move(*loaded));
    if (loaded.error().code == ErrorCode::out_of_memory) return tl::unexpected(loaded.error());
    findings.add({.verdict = verdict_of(loaded.error().code),
                  .what = fmt::format("checkpoint {:#x} is not whole: {}; the one before it counts",
                                      number.value, loaded.error().message)});
  }
  return std::optional<FoundCheckpoint>();
}

Result<std::vector<std::uint32_t>> sessions_of_another_history(const FoundCheckpoint& checkpoint,
                                                               const FoundRecords& records) {
  const std::uint32_t epoch = records.session_epochs[checkpoint.session];
  std::map<std::uint64_t, std::uint32_t> epochs;  // of the sessions that it knows, by ordinal
  for (const auto& [key, value] : checkpoint.system_rows) {
    if (!key.starts_with(metadata::system_key_session_prefix)) continue;
    NACRE_ASSIGN(const auto row, metadata::decode_session_row(value));
    epochs.emplace(row.ordinal, row.epoch);
  }
  // Most records of a session have versions of that session; some may have those of earlier ones.
  std::vector<std::uint64_t> ordinals(records.sessions.size());
  for (const FoundRecord& record : records.all) {
    std::uint64_t& ordinal = ordinals[record.session];
    ordinal = std::max(ordinal, record.version.value >> metadata::record_version_session_shift);
  }
  std::vector<std::uint32_t> others;
  for (std::uint32_t i = 0; i < ordinals.size(); ++i) {
    const auto row = checkpoint.system_rows.find(metadata::session_key_of(records.sessions[i]));
    if (row != checkpoint.system_rows.end()) {
      NACRE_ASSIGN(const auto known, metadata::decode_session_row(row->second));
      if (known.epoch != records.session_epochs[i]) others.push_back(i);
      continue;
    }
    // Without a record that is left, or after the checkpoint.
    if (ordinals[i] == 0 || ordinals[i] > checkpoint_ordinal(epochs)) continue;
    // A rotation of keys seals older records anew, under their versions. It begins with a
    // checkpoint of the new epoch, and a later session may go on with it.
    const auto same = epochs.find(ordinals[i]);
    const bool is_sealed_anew =
        records.session_epochs[i] == epoch && same != epochs.end() && same->second < epoch;
    if (!is_sealed_anew) others.push_back(i);
  }
  return others;
}

}  // namespace nacre::fs
