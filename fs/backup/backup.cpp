// SPDX-License-Identifier: Apache-2.0
// The order in which a target becomes a backup, and which state it holds after a crash behind each
// step.
//
//   first backup: db/ and segments/ are filled, then everything that does not belong there is
//   removed, then the superblock is written. Before that step the target is no volume; after it the
//   target is a whole one.
//
//   a later one
//   1. mark            names the old CURRENT and the next one                        old state
//   2. keyring, superblock   never older than the generations in db/                 old state
//   3. segments        new ones as NAME.new; they count once a row names them        old state
//   4. tables          no manifest names them yet; the new log is NAME.new1          old state
//   5. one rename      of the grown manifest, or of CURRENT to a new manifest        new state
//   6. log             gets its name. Its witness names the new manifest, so under that name it
//                      would have made the old state invalid. From step 5 on it counts under
//                      NAME.new1, because the manifest is the one that it names      new state
//   7. names           segments get theirs, and the mark drops the old CURRENT       new state
//   8. removal         of everything that the new state does not name                new state
#include "fs/backup/backup.h"

#include <fmt/format.h>

#include "fs/backup/backup_copier.h"
#include "fs/backup/backup_plan.h"
#include "fs/backup/backup_target.h"
#include "fs/store/segment_table.h"
#include "metadata/backing/two_copies.h"
#include "metadata/keys/keyring.h"
#include "metadata/superblock.h"
#include "metadata/text/rfc3339.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

using metadata::database_folder;
using metadata::segment_folder;

namespace {

constexpr std::string_view unfinished_database_suffix = ".dbtmp";  // as RocksDB's own
constexpr std::size_t document_size_bytes_max = 16u << 20;
// Folders and small files, and what a file system takes in addition to the bytes of a file.
constexpr std::uint64_t overhead_bytes = 1u << 20;
constexpr std::uint64_t overhead_bytes_per_file = 8u << 10;

const std::string current_path = fmt::format("{}/CURRENT", database_folder);

class Run {
 public:
  Run(metadata::BackingDirectory& source, const BackupSource& what,
      metadata::BackingDirectory& target, const BackupOptions& options,
      const ProgressFunction& progress)
      : source_(source),
        what_(what),
        target_(target),
        copier_(source, target, options, progress, report_) {}

  Result<BackupReport> run() {
    NACRE_ASSIGN(auto checked, check_backup_target(source_, target_));
    is_first_ = checked.is_first;
    mark_ = std::move(checked.mark);
    if (!is_first_ && !what_.is_clean) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{} was not closed cleanly, so its files cannot replace the backup "
                              "in {} in one step. Mount it once, which recovers it, or give an "
                              "empty folder; nothing was changed",
                              source_.description(), target_.description()));
    }
    if (is_first_) NACRE_TRY(begin_first());
    auto plan = plan_backup(source_, what_, target_, is_first_);
    if (!plan) {
      // A file may be gone because it is no longer held.
      if (const auto held = copier_.check_hold(hold_patience); !held) return explain(held.error());
      return tl::unexpected(plan.error());
    }
    plan_ = std::move(*plan);
    NACRE_TRY(remove_unfinished());
    auto done = check_space();
    if (done) done = bring();
    if (!done) return explain(done.error());
    report_.file_count = plan_.wanted.size();
    report_.total_bytes = plan_.total_bytes;
    return std::move(report_);
  }

 private:
  Result<> begin_first() {
    NACRE_TRY(save_backup_mark(target_, mark_));
    for (const std::string_view folder : {database_folder, segment_folder})
      NACRE_TRY(target_.make_directory(folder));
    return target_.sync_directory("");
  }

  Result<> bring() {
    copier_.set_total(plan_.copy_bytes);
    if (!is_first_) NACRE_TRY(save_mark(true));
    NACRE_TRY(bring_document(metadata::keyring_file, [](ByteView text) {
      return metadata::parse_keyring(text).map([](const auto& it) { return it.claims.generation; });
    }));
    if (!is_first_) NACRE_TRY(bring_superblock());
    NACRE_TRY(bring_segments());
    NACRE_TRY(bring_tables());
    NACRE_TRY(switch_over());
    NACRE_TRY(name_segments());
    if (is_first_) {
      NACRE_TRY(remove_unwanted());
      NACRE_TRY(save_mark(false));
      return bring_superblock();
    }
    NACRE_TRY(save_mark(false));
    return remove_unwanted();
  }

  // Adds to the error which state the target holds, whatever step was under way.
  tl::unexpected<Error> explain(Error error) const {
    std::string_view state = "the backup that was there is as it was";
    if (is_first_) state = "this folder is no volume yet";
    if (is_switched_ && !is_first_) state = "this folder holds the new backup already";
    error.message += fmt::format("; {}: {}, and running nacre backup again goes on from here{}",
                                 target_.description(), state,
                                 error.code == ErrorCode::no_space ? " once there is room" : "");
    return tl::unexpected(std::move(error));
  }

  Result<> check_space() {
    NACRE_ASSIGN(const auto space, target_.space());
    const std::uint64_t needed =
        plan_.copy_bytes + overhead_bytes + plan_.copies.size() * overhead_bytes_per_file;
    if (needed <= space.available_bytes) return {};
    return fail(ErrorCode::no_space,
                fmt::format("{}: there is room for {} bytes, but this backup takes {} more",
                            target_.description(), space.available_bytes, needed));
  }

  Result<> save_mark(bool under_way) {
    const Bytes next = header_of(what_.snapshot.current);
    BackupMark mark{.volume_id = mark_.volume_id};
    if (under_way) {
      NACRE_ASSIGN(const Bytes current, metadata::read_file(target_, current_path));
      mark.current_headers.push_back(header_of(current));
    } else {
      mark.finished = metadata::rfc3339_now();
    }
    if (!under_way || mark.current_headers.front() != next) mark.current_headers.push_back(next);
    return save_backup_mark(target_, mark);
  }

  template <typename GenerationOf>
  Result<> bring_document(std::string_view name, GenerationOf generation_of) {
    NACRE_ASSIGN(auto chosen, metadata::read_copies(source_, name, document_size_bytes_max,
                                                    [&](ByteView text) -> Result<std::uint64_t> {
                                                      return generation_of(text);
                                                    }));
    for (Error& warning : chosen.warnings) {
      ++report_.damage_count;
      report_.damage.push_back(std::move(warning));
    }
    const auto has = [&](const std::string& path) {
      const auto there = metadata::read_file(target_, path, document_size_bytes_max);
      return there && *there == chosen.text;
    };
    if (has(std::string(name)) && has(metadata::copy_name(name))) return {};
    return metadata::write_copies(target_, name, as_text(chosen.text));
  }
  Result<> bring_superblock() {
    return bring_document(metadata::superblock_file, [](ByteView text) {
      return metadata::parse_superblock(text).map(
          [](const auto& it) { return it.claims.generation; });
    });
  }

  Result<> copy(CopyStep step, std::string_view unfinished_suffix, std::string_view suffix) {
    for (const PlannedCopy& planned : plan_.copies) {
      if (planned.step != step) continue;
      const std::string& path = planned.file.path;
      NACRE_TRY(copier_.copy(planned.file, path + std::string(unfinished_suffix),
                             path + std::string(suffix)));
    }
    return {};
  }

  Result<> bring_segments() {
    NACRE_TRY(copy(CopyStep::segment, ".part", ""));
    NACRE_TRY(copy(CopyStep::arriving_segment, ".part", ".new"));
    return target_.sync_directory(segment_folder);
  }

  // Also brings what the switch to the new state needs, so that no long copy can fail between the
  // renames of the switch.
  Result<> bring_tables() {
    NACRE_TRY(copy(CopyStep::table, unfinished_database_suffix, ""));
    NACRE_TRY(copy(CopyStep::manifest, ".unfinished.dbtmp", unfinished_database_suffix));
    NACRE_TRY(bring_log());
    if (plan_.replaces_current) {
      NACRE_TRY(copier_.write(what_.snapshot.current, current_path + ".unfinished.dbtmp",
                              current_path + std::string(unfinished_database_suffix)));
    }
    return target_.sync_directory(database_folder);
  }

  // A log that an interrupted run brought may be the one that makes the target whole, so it stays
  // next to this one.
  Result<> bring_log() {
    for (int run = 1;; ++run) {
      log_suffix_ = fmt::format(".new{}", run);
      bool is_free = true;
      for (const PlannedCopy& planned : plan_.copies) {
        if (planned.step != CopyStep::log) continue;
        NACRE_ASSIGN(const bool taken, target_.exists(planned.file.path + log_suffix_));
        is_free &= !taken;
      }
      if (is_free) break;
    }
    return copy(CopyStep::log, unfinished_database_suffix, log_suffix_);
  }

  Result<> put_in_place(const std::string& path, std::string_view suffix) {
    NACRE_TRY(target_.rename(path + std::string(suffix), path));
    return target_.sync_directory(database_folder);
  }

  Result<> switch_over() {
    for (const CopyStep step : {CopyStep::manifest, CopyStep::log}) {
      for (const PlannedCopy& planned : plan_.copies) {
        if (planned.step != step) continue;
        NACRE_TRY(put_in_place(planned.file.path, step == CopyStep::log
                                                      ? std::string_view(log_suffix_)
                                                      : unfinished_database_suffix));
      }
      if (step == CopyStep::manifest && plan_.replaces_current) {
        NACRE_TRY(put_in_place(current_path, unfinished_database_suffix));
      }
      is_switched_ = true;
    }
    return {};
  }

  Result<> name_segments() {
    std::vector<std::string> paths = plan_.arrived;
    for (const PlannedCopy& planned : plan_.copies) {
      if (planned.step == CopyStep::arriving_segment) paths.push_back(planned.file.path);
    }
    for (const std::string& path : paths)
      NACRE_TRY(target_.rename(path + ".new", path));
    return paths.empty() ? Result<>() : target_.sync_directory(segment_folder);
  }

  // Removes the unfinished files of an interrupted run.
  Result<> remove_unfinished() {
    return remove_files([](const std::string& path) {
      return path.ends_with(".part") || path.ends_with(".dbtmp");
    });
  }
  Result<> remove_unwanted() {
    return remove_files([&](const std::string& path) { return !plan_.wanted.contains(path); });
  }
  template <typename Unwanted>
  Result<> remove_files(Unwanted is_unwanted) {
    for (const std::string_view folder : {database_folder, segment_folder}) {
      NACRE_ASSIGN(const auto names, target_.list(folder));
      bool removed = false;
      for (const std::string& name : names) {
        const std::string path = fmt::format("{}/{}", folder, name);
        if (!is_unwanted(path)) continue;
        NACRE_TRY(target_.remove(path));
        ++report_.removed_file_count;
        removed = true;
      }
      if (removed) NACRE_TRY(target_.sync_directory(folder));
    }
    return {};
  }

  metadata::BackingDirectory& source_;
  const BackupSource& what_;
  metadata::BackingDirectory& target_;
  BackupReport report_;
  BackupCopier copier_;
  bool is_first_ = true;
  bool is_switched_ = false;
  std::string log_suffix_;
  BackupMark mark_;
  BackupPlan plan_;
};

}  // namespace

Result<BackupReport> back_up(metadata::BackingDirectory& source, const BackupSource& what,
                             metadata::BackingDirectory& target, const BackupOptions& options,
                             const ProgressFunction& progress) {
  return Run(source, what, target, options, progress).run();
}

}  // namespace nacre::fs
