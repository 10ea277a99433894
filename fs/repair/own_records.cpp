// SPDX-License-Identifier: Apache-2.0
#include "fs/repair/own_records.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "fs/store/genuine_check.h"

namespace nacre::fs {

using metadata::Table;

// A segment's row proves that the session which made the segment belongs to the volume.
Result<> OwnRecords::note_sessions() {
  constexpr std::string_view prefix = metadata::system_key_session_prefix;
  NACRE_TRY(
      database_.scan(Table::system, prefix, "", [&](std::string_view key, std::string_view value) {
        if (!key.starts_with(prefix)) return false;
        const auto row = metadata::decode_session_row(value);
        engine::SessionSalt salt;
        if (!row || key.size() != prefix.size() + salt.size()) return true;
        std::copy_n(key.begin() + prefix.size(), salt.size(), salt.begin());
        sessions_.emplace(salt, row->epoch);
        session_rows_.emplace(row->ordinal, *row);
        return true;
      }));
  return database_.scan(Table::segments, "", "", [&](std::string_view, std::string_view value) {
    if (const auto row = metadata::decode_segment_row(value)) {
      sessions_.emplace(row->salt, row->epoch);
    }
    return true;
  });
}

// Whether a session is the volume's own, or its row may be among those that are lost. ordinal is
// the highest one among the versions of its records.
bool OwnRecords::may_be_own(const FoundRecords& records, std::uint32_t session,
                            std::uint64_t ordinal) const {
  const std::uint32_t epoch = records.session_epochs[session];
  const auto& salt = records.sessions[session];
  if (const auto own = sessions_.find(salt); own != sessions_.end()) {
    return own->second == epoch;
  }
  if (!rescue_.may_have_lost(Table::system, metadata::session_key_of(salt))) return false;
  // If the session of this ordinal has a row, this one is of another branch of the volume's
  // history. But a rotation of keys seals records anew, under the versions that they had.
  const auto same = session_rows_.find(ordinal);
  return same == session_rows_.end() || same->second.epoch < epoch;
}

Result<> OwnRecords::keep_known_sessions(FoundRecords& records) {
  NACRE_TRY(note_sessions());
  std::vector<std::uint64_t> ordinals(records.sessions.size());
  for (const FoundRecord& record : records.all) {
    std::uint64_t& ordinal = ordinals[record.session];
    ordinal = std::max(ordinal, record.version.value >> metadata::record_version_session_shift);
  }
  std::vector<bool> is_own(records.sessions.size());
  for (std::uint32_t i = 0; i < is_own.size(); ++i)
    is_own[i] = may_be_own(records, i, ordinals[i]);
  std::erase_if(records.all, [&](const FoundRecord& record) { return !is_own[record.session]; });
  return {};
}

// Drops records of older epochs without the digest that the beginning of a rotation made of each.
// If the digest itself may be lost, the content of files is not given up for that.
Result<> OwnRecords::drop_unproven(FoundRecords& records, RecordOpener& opener, bool of_files,
                                   const std::function<bool(const FoundRecord&)>& may_count) const {
  const auto find = [&](std::string_view key) { return database_.get(Table::system, key); };
  std::vector<FoundRecord> kept;
  for (const FoundRecord& record : records.all) {
    const bool is_due = is_of_file(record.kind) == of_files &&
                        keys_.is_superseded(records.session_epochs[record.session]);
    if (!is_due) {
      kept.push_back(record);
      continue;
    }
    const auto bytes = opener.read(record);
    if (!bytes && bytes.error().code == ErrorCode::out_of_memory) {
      return tl::unexpected(bytes.error());
    }
    if (!bytes) continue;
    NACRE_ASSIGN(const auto header, engine::parse_record_header(*bytes));
    const auto genuine = check_genuine(find, header, *bytes);
    if (genuine) {
      kept.push_back(record);
      continue;
    }
    if (genuine.error().code == ErrorCode::out_of_memory) return genuine;
    const bool may_be_lost =
        rescue_.may_have_lost(Table::system, metadata::system_key_genuine) ||
        rescue_.may_have_lost(Table::system, metadata::genuine_key_of(header.salt, header.counter));
    NACRE_ASSIGN(const auto digest, find(metadata::genuine_key_of(header.salt, header.counter)));
    if (!of_files || digest || !may_be_lost || !may_count(record)) continue;
    return fail(
        ErrorCode::tampered,
        fmt::format("{} at offset {}: the volume's keys are being rotated, and db/ has lost "
                    "what tells its genuine records of the older key from forged ones. "
                    "Nothing was changed. Bring back db/ as it was, or a backup; or, if "
                    "nobody else had the older key, make the volume anew elsewhere: "
                    "fsck.nacre --salvage TARGET",
                    records.files[record.file], record.offset));
  }
  records.all = std::move(kept);
  return {};
}

// The rows of sessions may be lost. Then a checkpoint of another branch of history passes for the
// volume's own, but the volume's own sessions contradict it.
Result<> OwnRecords::check_history(const FoundRecords& records,
                                   const FoundCheckpoint& checkpoint) const {
  NACRE_ASSIGN(const auto others, sessions_of_another_history(checkpoint, records));
  bool is_other = !others.empty();
  std::uint64_t newest = 0;
  std::set<std::string> known;
  for (const auto& [key, value] : checkpoint.system_rows) {
    if (!key.starts_with(metadata::system_key_session_prefix)) continue;
    NACRE_ASSIGN(const auto row, metadata::decode_session_row(value));
    newest = std::max(newest, row.ordinal);
    known.insert(key);
  }
  constexpr std::string_view prefix = metadata::system_key_session_prefix;
  NACRE_TRY(
      database_.scan(Table::system, prefix, "", [&](std::string_view key, std::string_view value) {
        if (!key.starts_with(prefix)) return false;
        const auto row = metadata::decode_session_row(value);
        is_other = is_other || (row && row->ordinal <= newest && !known.contains(std::string(key)));
        return true;
      }));
  if (!is_other) return {};
  return fail(
      ErrorCode::tampered,
      fmt::format("{}: the segments hold two histories of the volume, and db/ has lost what "
                  "tells its own: one is of a copy that was written to. Nothing was "
                  "changed. Bring back db/ as it was, or a backup; or make the volume anew "
                  "elsewhere, from the history that you name: fsck.nacre --salvage TARGET",
                  description_));
}

}  // namespace nacre::fs
