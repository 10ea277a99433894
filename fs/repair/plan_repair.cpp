// SPDX-License-Identifier: Apache-2.0
// Plans a repair: runs its parts in order.
#include <map>
#include <set>

#include <fmt/format.h>

#include "fs/check/path_finder.h"
#include "fs/repair/database_swap.h"
#include "fs/repair/database_view.h"
#include "fs/repair/repair.h"
#include "fs/repair/repair_parts.h"
#include "metadata/format/checkpoint.h"
#include "metadata/sealed_fs/epoch_switch.h"
#include "metadata/text/rfc3339.h"

namespace nacre::fs {

using metadata::Table;

namespace {

Result<> add_paths(const metadata::Database& database, RepairPlan& plan) {
  std::set<metadata::InodeNumber> inodes;
  for (const auto& step : plan.steps) {
    if (step.inode) inodes.insert(*step.inode);
  }
  for (const auto& lost : plan.lost)
    inodes.insert(lost.inode);
  NACRE_ASSIGN(const auto paths, find_paths(database, inodes));
  const auto paths_of = [&](metadata::InodeNumber inode) {
    const auto found = paths.find(inode);
    return found == paths.end() ? std::vector<std::string>() : found->second;
  };
  for (auto& step : plan.steps) {
    if (step.inode) step.paths = paths_of(*step.inode);
  }
  for (auto& lost : plan.lost)
    lost.paths = paths_of(lost.inode);
  return {};
}

// An older superblock may have other chunk sizes and padding, which the repair would follow.
Result<> check_superblock(const metadata::Database& database, const metadata::VolumeKeys& volume) {
  NACRE_ASSIGN(const auto value, database.get(Table::system, metadata::system_key_superblock));
  const auto noted = value ? metadata::decode_u64(*value) : fail(ErrorCode::missing);
  if (!noted) return {};
  const auto newest = metadata::check_noted_generation(volume.superblock.generation, *noted);
  if (newest) return {};
  return fail(newest.error().code, newest.error().message + "; nothing was changed");
}

// An older keyring may lack the keys of newer records, which would then all look forged.
Result<> check_keyring(const metadata::Database& database, const metadata::VolumeKeys& volume) {
  NACRE_ASSIGN(const auto value, database.get(Table::system, metadata::system_key_keyring));
  const auto known = value ? metadata::decode_u64(*value) : fail(ErrorCode::missing);
  if (!known || *known <= volume.keyring.generation) return {};
  return fail(
      ErrorCode::rolled_back,
      fmt::format("the keyring is of generation {}, but the volume was used with generation "
                  "{}: put the newer one back first; nothing was changed",
                  volume.keyring.generation, *known));
}

// The row of the last checkpoint may say that nothing has changed since. The repair is a change, so
// that mark is removed.
Result<> reopen_checkpoints(RepairContext& context) {
  if (!context.draft.changes_rows()) return {};
  std::map<std::string, metadata::CheckpointRow> closed;
  NACRE_TRY(context.scan(Table::system, [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(metadata::system_key_checkpoint_prefix)) return;
    auto row = metadata::decode_checkpoint_row(value);
    if (row && row->closed_session != 0) closed.emplace(key, std::move(*row));
  }));
  for (auto& [key, row] : closed) {
    row.closed_session = 0;
    NACRE_TRY(context.draft.put(Table::system, key, metadata::encode(row),
                                "a checkpoint is older than this repair"));
  }
  return {};
}

Result<> run_parts(RepairContext& context) {
  NACRE_TRY(repair_copies(context));
  NACRE_TRY(repair_name_hash(context));
  NACRE_TRY(repair_names(context));
  NACRE_TRY(repair_chunk_rows(context));
  NACRE_TRY(repair_segment_rows(context));
  NACRE_TRY(repair_records(context));
  NACRE_TRY(repair_accounts(context));
  return reopen_checkpoints(context);
}

}  // namespace

Result<> RepairContext::scan(
    Table table,
    const std::function<void(std::string_view key, std::string_view value)>& visit) const {
  const auto scanned =
      database().scan(table, "", "", [&](std::string_view key, std::string_view value) {
        visit(key, value);
        return true;
      });
  if (!scanned) return add_context(scanned.error(), metadata::to_string(table));
  return {};
}

Result<metadata::RecordVersion> RepairContext::next_version() {
  if (next_version_number == 0) {
    NACRE_ASSIGN(const auto stored,
                 database().get(Table::system, metadata::system_key_next_session));
    const auto ordinal = stored ? metadata::decode_u64(*stored) : fail(ErrorCode::missing);
    if (!ordinal || *ordinal == 0) {
      return fail(ErrorCode::corrupt,
                  "the count of write sessions is damaged: repair without --drop-damaged first");
    }
    engine::SessionSalt salt;
    draw.fill(salt);
    const metadata::SessionRow row{
        .ordinal = *ordinal, .epoch = volume.keys->current_epoch().number, .opened_seconds = 0};
    NACRE_TRY(draft.put(Table::system, metadata::session_key_of(salt), metadata::encode(row),
                        "a write session for what this repair writes"));
    NACRE_TRY(draft.put(Table::system, std::string(metadata::system_key_next_session),
                        metadata::encode_u64(*ordinal + 1),
                        "a write session for what this repair writes"));
    next_version_number = *ordinal << metadata::record_version_session_shift;
  }
  return metadata::RecordVersion{next_version_number++};
}

namespace {

// Makes the plan for a volume whose db/ can be read.
Result<> make_plan(const std::shared_ptr<metadata::BackingDirectory>& directory,
                   const metadata::VolumeKeys& volume, engine::Engine& engine,
                   const RepairOptions& options, const ProgressFunction& progress,
                   RepairDraft& made) {
  // The database is open for reading only, so no change can reach the disk.
  NACRE_ASSIGN(const auto database,
               metadata::Database::open(directory, volume.keys, {.read_only = true}));
  NACRE_TRY(check_keyring(*database, volume));
  NACRE_TRY(check_superblock(*database, volume));
  PlanDraft draft(*database);
  PlanDraw draw(*volume.keys, options.seed ? *options.seed : new_plan_seed());
  RepairContext context{.directory = *directory,
                        .volume = volume,
                        .engine = engine,
                        .options = options,
                        .progress = progress,
                        .draft = draft,
                        .left = made.left,
                        .draw = draw};
  NACRE_TRY(run_parts(context));
  made.plan = draft.take();
  made.plan.volume_id = volume.keys->volume_id();
  made.plan.created = metadata::rfc3339_now();
  NACRE_ASSIGN(const auto next, database->get(Table::system, metadata::system_key_next_session));
  if (next) {
    NACRE_ASSIGN(made.plan.next_session, metadata::decode_u64(*next));
  }
  NACRE_TRY(add_paths(*database, made.plan));
  if (!made.database) return {};
  std::set<metadata::InodeNumber> inodes;
  for (const OlderRows& rows : made.database->older) {
    if (rows.inode) inodes.insert(*rows.inode);
  }
  NACRE_ASSIGN(const auto paths, find_paths(*database, inodes));
  for (OlderRows& rows : made.database->older) {
    if (rows.inode && paths.contains(*rows.inode)) rows.paths = paths.at(*rows.inode);
  }
  return {};
}

// Makes db/ anew, and plans the rest with the new one in its place.
Result<RepairDraft> plan_with_new_database(
    const std::string& name, const std::shared_ptr<metadata::BackingDirectory>& directory,
    const metadata::DatabaseRescue& rescue, const metadata::VolumeKeys& volume,
    engine::Engine& engine, const RepairOptions& options, const ProgressFunction& progress) {
  const auto& holder = options.scratch ? options.scratch : directory;
  DatabaseEdit edit{.folder = database_folder_of(name), .before = {}, .after = {}};
  NACRE_ASSIGN(edit.before, fingerprint_of(*directory, metadata::database_folder));
  NACRE_ASSIGN(edit.content, digest_of_content(*directory, metadata::database_folder));
  const auto view = with_database(directory, holder, edit.folder);
  RepairDraft made;
  NACRE_ASSIGN(made.database, rebuild_database(directory, view, rescue, volume, engine, progress));
  NACRE_TRY(holder->sync_directory(""));
  NACRE_ASSIGN(edit.after, digest_of_rows(view, volume, nullptr));
  NACRE_TRY(make_plan(view, volume, engine, options, progress, made));
  made.plan.name = name;
  std::string why =
      fmt::format("made anew, since it is damaged; the old one is kept as {}", edit.folder);
  made.plan.steps.insert(made.plan.steps.begin(),
                         RepairStep{.change = std::move(edit), .why = std::move(why), .paths = {}});
  return made;
}

}  // namespace

Result<RepairDraft> plan_repair(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                const metadata::VolumeKeys& volume, engine::Engine& engine,
                                const RepairOptions& options, const ProgressFunction& progress) {
  // Not damage, though it looks like it.
  NACRE_TRY(metadata::settle_epoch_switch(*directory, std::string(metadata::database_folder),
                                          *volume.keys, options.scratch != nullptr));
  if (!options.scratch) NACRE_TRY(tidy_databases(*directory, volume));
  NACRE_ASSIGN(const auto rescue,
               find_database_damage(directory, volume.keys, options.accept_unreadable));
  if (rescue != nullptr) {
    const std::string name = new_plan_name(metadata::rfc3339_now());
    auto made = plan_with_new_database(name, directory, *rescue, volume, engine, options, progress);
    // The error of the plan is returned. If the folder cannot be removed here, the next repair does
    // it.
    if (!made && !options.scratch) (void)remove_folder(*directory, database_folder_of(name));
    return made;
  }
  RepairDraft made;
  NACRE_TRY(make_plan(directory, volume, engine, options, progress, made));
  return made;
}

}  // namespace nacre::fs
