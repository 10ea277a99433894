// SPDX-License-Identifier: Apache-2.0
// The order of a salvage:
//
//   1. all records of the source are found and authenticated
//   2. the newest whole checkpoint is chosen, unless the records tell of two histories, and the
//      records that its rows name are looked up
//   3. the room in the target is checked; from here on the target is written, as an unfinished
//   volume
//   4. records are copied and rows written
//   5. the volume is opened: newer records go to lost+found, and closing it writes a checkpoint
//   6. the superblock makes the target a volume, and the volume is checked
#include "fs/salvage/salvage.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "fs/check/checker.h"
#include "fs/check/path_finder.h"
#include "fs/mount/mounted.h"
#include "fs/salvage/salvage_newer.h"
#include "fs/salvage/salvage_tables.h"
#include "fs/store/genuine_check.h"
#include "metadata/text/rfc3339.h"

namespace nacre::fs {

using metadata::InodeNumber;

namespace {

// Room in addition to records and rows: segments that are being filled, the reserve of a mount,
// logs of the database.
constexpr std::uint64_t overhead_bytes = 256u << 20;
// Each row takes room in a table, in the log, and once more while tables are merged.
constexpr std::uint64_t row_cost = 3;
// How much of a salt names a history.
constexpr std::size_t history_bytes = 4;
constexpr std::size_t shown_histories_max = 8;

class Salvage {
 public:
  Salvage(metadata::BackingDirectory& source, const metadata::VolumeKeys& volume,
          const std::shared_ptr<metadata::BackingDirectory>& target, engine::Engine& engine,
          const ProgressFunction& progress, std::string_view history)
      : history_(history),
        context_{.source = source,
                 .volume = volume,
                 .target = target,
                 .engine = engine,
                 .findings = report_.findings,
                 .progress = progress} {}

  Result<SalvageReport> run() {
    NACRE_TRY(metadata::check_volume_place(*context_.target));
    NACRE_ASSIGN(records_, scan_records(context_.source, *context_.volume.keys, context_.engine,
                                        chunk_size_bytes(), report_.findings, context_.progress));
    report_.scanned_bytes = records_.scanned_bytes;
    RecordOpener opener(context_.source, *context_.volume.keys, context_.engine, records_);
    NACRE_ASSIGN(const auto checkpoint, choose_checkpoint(opener));
    NamedRecords named;
    if (checkpoint) {
      NACRE_TRY(note_checkpoint(*checkpoint));
      NACRE_ASSIGN(named, mark_named(context_, *checkpoint, records_, opener));
      report_.record_count = named.record_count;
      report_.stored_bytes = named.stored_bytes;
      report_.lost_record_count = named.lost_count;
    }
    const auto newer = newer_records(
        records_, checkpoint ? checkpoint->root.settled : metadata::RecordVersion{}, named.newest);
    if (!checkpoint && newer.empty()) {
      return fail(ErrorCode::missing,
                  fmt::format("{}: no record of it can be opened, so there is nothing to salvage",
                              context_.source.description()));
    }
    NACRE_TRY(check_room(checkpoint ? &*checkpoint : nullptr, plain_bytes_of(newer)));

    const metadata::NewVolume made{.superblock = context_.volume.superblock,
                                   .keyring = context_.volume.keyring,
                                   .keys = context_.volume.keys};
    NACRE_TRY(metadata::begin_volume_files(*context_.target, made));
    NACRE_TRY(checkpoint ? rebuild_tables(context_, *checkpoint, records_, opener)
                         : make_empty_tables(context_, records_));
    NACRE_TRY(add_newer(newer));
    NACRE_TRY(metadata::complete_volume_files(*context_.target, made));
    NACRE_TRY(check());
    return std::move(report_);
  }

 private:
  std::uint32_t chunk_size_bytes() const { return context_.volume.superblock.chunk_size_bytes; }

  std::string name_of(std::uint32_t session) const {
    std::string name;
    for (std::size_t i = 0; i < history_bytes; ++i)
      name += fmt::format("{:02x}", records_.sessions[session][i]);
    return name;
  }
  bool is_named(std::uint32_t session) const {
    std::string name;
    for (const Byte byte : records_.sessions[session])
      name += fmt::format("{:02x}", byte);
    return name.starts_with(history_);
  }

  // The newest whole checkpoint, of the history that is named if there are two. From then on only
  // records that may count with it are left.
  Result<std::optional<FoundCheckpoint>> choose_checkpoint(RecordOpener& opener) {
    if (!history_.empty()) {
      const bool is_long = history_.size() >= 2 * history_bytes;
      std::erase_if(records_.all, [&](const FoundRecord& record) {
        return !is_of_file(record.kind) && !(is_long && is_named(record.session));
      });
    }
    NACRE_ASSIGN(auto checkpoint, find_checkpoint(records_, opener, report_.findings));
    if (!checkpoint) {
      if (history_.empty()) return checkpoint;
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: no whole checkpoint is of the history '{}'",
                              context_.source.description(), printable_history()));
    }
    NACRE_ASSIGN(const auto others, sessions_of_another_history(*checkpoint, records_));
    if (!others.empty() && history_.empty()) return tell_histories(opener, *checkpoint, others);
    const std::size_t count = records_.all.size();
    if (!history_.empty()) leave_out_unknown(*checkpoint);
    NACRE_TRY(leave_out_forged(opener, *checkpoint));
    if (records_.all.size() == count) return checkpoint;
    // The checkpoint points to records of the list, which have moved in memory.
    FindingList told;
    return find_checkpoint(records_, opener, told);
  }

  std::string printable_history() const {
    const bool is_hex = history_.find_first_not_of("0123456789abcdef") == history_.npos;
    return is_hex ? std::string(history_.substr(0, 32)) : "";
  }

  // Both have the volume's keys, and nothing without db/ says which one is the volume's own.
  tl::unexpected<Error> tell_histories(RecordOpener& opener, const FoundCheckpoint& checkpoint,
                                       const std::vector<std::uint32_t>& others) {
    std::map<std::uint32_t, const FoundRecord*> roots;  // the newest of each other session
    for (const FoundRecord& record : records_.all) {
      const bool is_other = std::find(others.begin(), others.end(), record.session) != others.end();
      if (is_other && record.kind == metadata::RecordKind::checkpoint_root) {
        roots[record.session] = &record;
      }
    }
    const auto describe_root = [&](std::uint32_t session, const metadata::CheckpointRoot& root) {
      constexpr auto inodes = static_cast<std::size_t>(metadata::CheckpointSection::inodes) - 1;
      return fmt::format("{} (checkpoint of {}, {} files and directories)", name_of(session),
                         metadata::rfc3339(root.written_seconds), root.row_counts[inodes]);
    };
    std::string names = describe_root(checkpoint.session, checkpoint.root);
    std::size_t shown = 0;
    for (const auto& [session, record] : roots) {
      const auto plain = opener.open(*record);
      const auto root =
          plain ? metadata::decode_checkpoint_root(as_text(*plain)) : tl::unexpected(plain.error());
      if (root && ++shown <= shown_histories_max) names += ", " + describe_root(session, *root);
    }
    if (shown == 0) names += "; the other one has no checkpoint";
    return fail(ErrorCode::tampered,
                fmt::format("{}: the segments hold two histories of the volume, and only db/ could "
                            "tell its own: one is of a copy that was written to. Name the one that "
                            "counts with --history. Nothing was written. Histories: {}",
                            context_.source.description(), names));
  }

  // Nothing tells to which history a session belongs that this checkpoint does not know.
  void leave_out_unknown(const FoundCheckpoint& checkpoint) {
    const auto count = std::erase_if(records_.all, [&](const FoundRecord& record) {
      return record.session != checkpoint.session &&
             !checkpoint.system_rows.contains(
                 metadata::session_key_of(records_.sessions[record.session]));
    });
    if (count == 0) return;
    report_.findings.add(
        {.severity = Severity::note,
         .verdict = Verdict::tampered,
         .what =
             fmt::format("{} records were left out: the history that counts does not know their "
                         "write sessions",
                         count)});
  }

  // While keys are rotated to format 2, digests tell the genuine records of older keys.
  Result<> leave_out_forged(RecordOpener& opener, const FoundCheckpoint& checkpoint) {
    const auto is_superseded = [&](const FoundRecord& record) {
      return context_.volume.keys->is_superseded(records_.session_epochs[record.session]);
    };
    if (std::none_of(records_.all.begin(), records_.all.end(), is_superseded)) return {};
    const auto& rows = checkpoint.system_rows;
    if (!rows.contains(std::string(metadata::system_key_genuine))) {
      report_.findings.add({.severity = Severity::note,
                            .verdict = Verdict::tampered,
                            .what = "the volume's keys were being rotated, and the checkpoint does "
                                    "not say which records of the older keys are genuine: a person "
                                    "who had these keys can have made any of them"});
      return {};
    }
    const auto find = [&](std::string_view key) -> Result<std::optional<std::string>> {
      const auto row = rows.find(std::string(key));
      if (row == rows.end()) return std::optional<std::string>();
      return std::optional(row->second);
    };
    std::vector<FoundRecord> kept;
    for (const FoundRecord& record : records_.all) {
      if (is_superseded(record)) {
        const auto bytes = opener.read(record);
        if (!bytes && bytes.error().code == ErrorCode::out_of_memory) {
          return tl::unexpected(bytes.error());
        }
        // A record that cannot be read now is reported later, for the row that names it.
        const auto header =
            bytes ? engine::parse_record_header(*bytes) : tl::unexpected(bytes.error());
        if (!header || !check_genuine(find, *header, *bytes)) continue;
      }
      kept.push_back(record);
    }
    records_.all = std::move(kept);
    return {};
  }

  Result<> note_checkpoint(const FoundCheckpoint& checkpoint) {
    report_.checkpoint_seconds = checkpoint.root.written_seconds;
    report_.inode_count =
        checkpoint.root
            .row_counts[static_cast<std::size_t>(metadata::CheckpointSection::inodes) - 1];
    const auto noted = checkpoint.system_rows.find(std::string(metadata::system_key_superblock));
    if (noted != checkpoint.system_rows.end()) {
      NACRE_ASSIGN(const std::uint64_t generation, metadata::decode_u64(noted->second));
      const auto newest =
          metadata::check_noted_generation(context_.volume.superblock.generation, generation);
      if (!newest) return add_context(newest.error(), context_.source.description());
    }
    const auto row = checkpoint.system_rows.find(std::string(metadata::system_key_keyring));
    if (row == checkpoint.system_rows.end()) return {};
    NACRE_ASSIGN(const std::uint64_t generation, metadata::decode_u64(row->second));
    if (generation <= context_.volume.keyring.generation) return {};
    return fail(
        ErrorCode::rolled_back,
        fmt::format("the keyring in {} is of generation {}, but the volume has already been "
                    "used with generation {}: it was put back to an older state; restore "
                    "the newer keyring. Nothing was written",
                    context_.source.description(), context_.volume.keyring.generation, generation));
  }

  Result<> check_room(const FoundCheckpoint* checkpoint, std::uint64_t newer_bytes) {
    NACRE_ASSIGN(const auto space, context_.target->space());
    const std::uint64_t rows = checkpoint ? checkpoint->root.stream_size : 0;
    const std::uint64_t needed = report_.stored_bytes + newer_bytes + newer_bytes / 8 +
                                 row_cost * rows + std::min(overhead_bytes, space.total_bytes / 8);
    if (needed <= space.available_bytes) return {};
    return fail(
        ErrorCode::no_space,
        fmt::format("{}: salvage needs {} bytes of room there, but only {} are free. Nothing "
                    "was written. Free room there, or choose a target on a larger disk. Of the "
                    "bytes needed, {} are for records, {} for newer data in lost+found, and "
                    "the rest for rows and as a reserve",
                    context_.target->description(), needed, space.available_bytes,
                    report_.stored_bytes, newer_bytes));
  }

  Result<> add_newer(const std::vector<const FoundRecord*>& newer) {
    NACRE_ASSIGN(auto engine, engine::Engine::create({.choice = engine::EngineChoice::cpu}));
    VolumeOptions options;
    const auto& superblock = context_.volume.superblock;
    options.store.chunk_size_bytes = superblock.chunk_size_bytes;
    options.store.codec = superblock.codec;
    options.store.level = superblock.level;
    options.store.padding = superblock.padding;
    options.superblock_generation = metadata::generation_to_note(superblock);
    NACRE_ASSIGN(const auto mounted,
                 Mounted::open(context_.target, context_.volume.keys,
                               context_.volume.keyring.generation, std::move(engine), options));
    RecordOpener opener(context_.source, *context_.volume.keys, context_.engine, records_);
    NACRE_ASSIGN(report_.newer, write_newer(mounted->volume(), chunk_size_bytes(), newer, opener,
                                            report_.findings, context_.progress));
    return mounted->close();
  }

  // Lost records are among the findings already, so the check does not report them again.
  Result<> check() {
    std::set<InodeNumber> hit;
    for (const Finding& finding : report_.findings.findings()) {
      if (finding.severity == Severity::error && finding.inode) hit.insert(*finding.inode);
    }
    metadata::VolumeKeys made = context_.volume;
    made.warnings.clear();  // they are about the source's copies
    NACRE_ASSIGN(auto checked,
                 check_volume(context_.target, made, context_.engine, {}, context_.progress));
    for (Finding& finding : checked.findings.findings()) {
      const bool is_known =
          finding.inode && finding.verdict == Verdict::missing && hit.contains(*finding.inode);
      if (!is_known) report_.findings.add(std::move(finding));
    }
    return add_paths(std::move(hit));
  }

  Result<> add_paths(std::set<InodeNumber> inodes) {
    for (const SalvagedFile& file : report_.newer)
      inodes.insert(file.inode);
    NACRE_ASSIGN(
        const auto database,
        metadata::Database::open(context_.target, context_.volume.keys, {.read_only = true}));
    NACRE_ASSIGN(const auto paths, find_paths(*database, inodes));
    const auto of = [&](InodeNumber inode) {
      const auto found = paths.find(inode);
      return found == paths.end() ? std::vector<std::string>() : found->second;
    };
    for (Finding& finding : report_.findings.findings()) {
      if (finding.inode) finding.paths = of(*finding.inode);
    }
    for (SalvagedFile& file : report_.newer)
      file.paths = of(file.inode);
    return {};
  }

  SalvageReport report_;
  const std::string_view history_;
  const SalvageContext context_;
  FoundRecords records_;
};

}  // namespace

Result<SalvageReport> salvage_volume(metadata::BackingDirectory& source,
                                     const metadata::VolumeKeys& volume,
                                     const std::shared_ptr<metadata::BackingDirectory>& target,
                                     engine::Engine& engine, const ProgressFunction& progress,
                                     std::string_view history) {
  return Salvage(source, volume, target, engine, progress, history).run();
}

}  // namespace nacre::fs
