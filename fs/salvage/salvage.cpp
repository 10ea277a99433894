// SPDX-License-Identifier: Apache-2.0
// The order of a salvage:
//
//   1. all records of the source are found and authenticated
//   2. the newest whole checkpoint is chosen, and the records that its rows name are looked up
//   3. the room in the target is checked; from here on the target is written, as an unfinished
//   volume
//   4. records are copied and rows written
//   5. the volume is opened: newer records go to lost+found, and closing it writes a checkpoint
//   6. the superblock makes the target a volume, and the volume is checked
#include "fs/salvage/salvage.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "fs/check/checker.h"
#include "fs/check/path_finder.h"
#include "fs/mount/mounted.h"
#include "fs/salvage/salvage_newer.h"
#include "fs/salvage/salvage_tables.h"

namespace nacre::fs {

using metadata::InodeNumber;

namespace {

// Room in addition to records and rows: segments that are being filled, the reserve of a mount,
// logs of the database.
constexpr std::uint64_t overhead_bytes = 256u << 20;
// Each row takes room in a table, in the log, and once more while tables are merged.
constexpr std::uint64_t row_cost = 3;

class Salvage {
 public:
  Salvage(metadata::BackingDirectory& source, const metadata::VolumeKeys& volume,
          const std::shared_ptr<metadata::BackingDirectory>& target, engine::Engine& engine,
          const ProgressFunction& progress)
      : context_{.source = source,
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
    NACRE_ASSIGN(const auto checkpoint, find_checkpoint(records_, opener, report_.findings));
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
    return fail(ErrorCode::no_space,
                fmt::format("{}: there is room for {} bytes, but salvage takes {} ({} of records, "
                            "{} of newer data for lost+found, the rest for rows and as reserve); "
                            "nothing was written",
                            context_.target->description(), space.available_bytes, needed,
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
  const SalvageContext context_;
  FoundRecords records_;
};

}  // namespace

Result<SalvageReport> salvage_volume(metadata::BackingDirectory& source,
                                     const metadata::VolumeKeys& volume,
                                     const std::shared_ptr<metadata::BackingDirectory>& target,
                                     engine::Engine& engine, const ProgressFunction& progress) {
  return Salvage(source, volume, target, engine, progress).run();
}

}  // namespace nacre::fs
