// SPDX-License-Identifier: Apache-2.0
// Applies the steps of a plan, and undoes them.
#include <fmt/format.h>

#include "fs/repair/database_swap.h"
#include "fs/repair/repair.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

using metadata::BackingDirectory;
using metadata::Database;
using metadata::OpenMode;

namespace {

// The size of rows that become durable together. After any number of groups, in order, a new plan
// can still repair the volume.
constexpr std::size_t group_size_bytes = 8u << 20;

enum class Direction : std::uint8_t { forward, back };

template <typename Edit>
const auto& target(const Edit& edit, Direction direction) {
  return direction == Direction::forward ? edit.after : edit.before;
}

Result<> commit(Database& database) {
  if (!database.freeze()) return {};
  return database.commit_frozen(true);
}

Result<> change_rows(Database& database, const RepairPlan& plan, Direction direction) {
  std::size_t size = 0;
  for (const RepairStep& step : plan.steps) {
    const auto* edit = std::get_if<RowEdit>(&step.change);
    if (edit == nullptr) continue;
    const auto& value = target(*edit, direction);
    size += edit->key.size() + (value ? value->size() : 0);
    if (value) {
      database.put(edit->table, edit->key, *value);
    } else {
      database.erase(edit->table, edit->key);
    }
    if (size < group_size_bytes) continue;
    NACRE_TRY(commit(database));
    size = 0;
  }
  return commit(database);
}

Result<> write_bytes(BackingDirectory& directory, const BytesEdit& edit, Direction direction) {
  NACRE_ASSIGN(const auto file, directory.open(edit.path, OpenMode::read_write));
  NACRE_TRY(file->write(edit.offset, ByteView(target(edit, direction))));
  return file->sync();
}

std::string folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == path.npos ? std::string_view() : path.substr(0, slash));
}

Result<> write_file(BackingDirectory& directory, const FileEdit& edit, Direction direction) {
  const auto& content = target(edit, direction);
  if (content) return metadata::replace_file(directory, edit.path, *content);
  const auto removed = directory.remove(edit.path);
  if (!removed && removed.error().code != ErrorCode::not_found) return removed;
  return directory.sync_directory(folder_of(edit.path));
}

Result<> change_files(BackingDirectory& directory, const RepairPlan& plan, Direction direction) {
  for (const RepairStep& step : plan.steps) {
    if (const auto* bytes = std::get_if<BytesEdit>(&step.change)) {
      NACRE_TRY(write_bytes(directory, *bytes, direction));
    } else if (const auto* file = std::get_if<FileEdit>(&step.change)) {
      NACRE_TRY(write_file(directory, *file, direction));
    }
  }
  return {};
}

Result<> change_database(const std::shared_ptr<BackingDirectory>& directory,
                         const metadata::VolumeKeys& volume, const RepairPlan& plan,
                         const DatabaseEdit& edit, Direction direction) {
  if (direction == Direction::forward) {
    NACRE_ASSIGN(const Bytes now, fingerprint_of(*directory, metadata::database_folder));
    return now == edit.before ? swap_databases(*directory, edit) : Result<>();
  }
  NACRE_ASSIGN(const auto state, state_of_database(directory, volume, plan, edit));
  return state == DatabaseState::after ? swap_databases(*directory, edit) : Result<>();
}

bool has_rows(const RepairPlan& plan) {
  for (const RepairStep& step : plan.steps) {
    if (std::holds_alternative<RowEdit>(step.change)) return true;
  }
  return false;
}

Result<> make_changes(const std::shared_ptr<BackingDirectory>& directory,
                      const metadata::VolumeKeys& volume, const RepairPlan& plan,
                      Direction direction) {
  NACRE_TRY(metadata::check_writable(volume.superblock));
  const DatabaseEdit* database_edit = database_edit_of(plan);
  if (database_edit != nullptr) {
    NACRE_TRY(change_database(directory, volume, plan, *database_edit, direction));
  }
  // The old db/ has the old rows.
  const bool is_taken_back = database_edit != nullptr && direction == Direction::back;
  if (has_rows(plan) && !is_taken_back) {
    NACRE_ASSIGN(const auto database,
                 Database::open(directory, volume.keys, {.padding = volume.superblock.padding}));
    NACRE_TRY(change_rows(*database, plan, direction));
    NACRE_TRY(database->close());
  }
  NACRE_TRY(change_files(*directory, plan, direction));
  // The new db/ is not needed any more.
  return is_taken_back ? remove_folder(*directory, database_edit->folder) : Result<>();
}

// The current state compared with a step: as before it, as after it, or neither.
enum class State : std::uint8_t { before, after, other };

template <typename T>
State compare(const T& now, const T& before, const T& after) {
  if (now == after) return State::after;
  return now == before ? State::before : State::other;
}

// Whether a power loss tore the write of this step: each byte is either the old or the new one. No
// other change leaves that, so either content may be written over it.
bool is_torn(const Bytes& now, const BytesEdit& edit) {
  if (now.size() != edit.before.size() || now.size() != edit.after.size()) return false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] != edit.before[i] && now[i] != edit.after[i]) return false;
  }
  return true;
}

Result<State> state_of(const Database& database, const RowEdit& edit) {
  NACRE_ASSIGN(const auto now, database.get(edit.table, edit.key));
  return compare(now, edit.before, edit.after);
}

Result<State> state_of(BackingDirectory& directory, const BytesEdit& edit) {
  NACRE_ASSIGN(const auto file, directory.open(edit.path, OpenMode::read));
  Bytes now(edit.after.size());
  NACRE_ASSIGN(const auto got, file->read(edit.offset, now));
  now.resize(got);
  const State state = compare(now, edit.before, edit.after);
  return state == State::other && is_torn(now, edit) ? State::after : state;
}

Result<State> state_of(BackingDirectory& directory, const FileEdit& edit) {
  std::optional<Bytes> now;
  auto content = metadata::read_file(directory, edit.path);
  if (content) {
    now = std::move(*content);
  } else if (content.error().code != ErrorCode::not_found) {
    return tl::unexpected(content.error());
  }
  return compare(now, edit.before, edit.after);
}

std::string describe_step(const RepairStep& step) {
  if (const auto* row = std::get_if<RowEdit>(&step.change)) {
    return fmt::format("a row of the table {}", metadata::to_string(row->table));
  }
  if (const auto* bytes = std::get_if<BytesEdit>(&step.change)) {
    return fmt::format("{} at offset {}", bytes->path, bytes->offset);
  }
  if (std::holds_alternative<DatabaseEdit>(step.change)) return "db/";
  return std::get<FileEdit>(step.change).path;
}

tl::unexpected<Error> changed_since(const std::string& what) {
  return fail(ErrorCode::not_permitted,
              fmt::format("the volume changed since the repair: {}. Undoing it now would damage "
                          "what came after; nothing was changed",
                          what));
}

// The same for a plan that made db/ anew: either all rows are as the plan left them, or db/ is the
// old one.
Result<bool> check_with_database(const std::shared_ptr<BackingDirectory>& directory,
                                 const metadata::VolumeKeys& volume, const RepairPlan& plan,
                                 const DatabaseEdit& edit) {
  NACRE_ASSIGN(const auto database, state_of_database(directory, volume, plan, edit));
  if (database == DatabaseState::other)
    return changed_since("rows of db/ are not as they were left");
  bool any = database == DatabaseState::after;
  if (any) {
    const auto old = fingerprint_of(*directory, edit.folder);
    if (!old || *old != edit.before) {
      return changed_since(fmt::format("{} is not the old db/ any more", edit.folder));
    }
    // The new db/ goes once the old one is back, so the old one must be all that it was.
    if (!edit.content.empty()) {
      NACRE_ASSIGN(const Bytes content, digest_of_content(*directory, edit.folder));
      if (content != edit.content) {
        return changed_since(
            fmt::format("{} does not have the content of the old db/ any more", edit.folder));
      }
    }
  }
  for (const RepairStep& step : plan.steps) {
    const auto* bytes = std::get_if<BytesEdit>(&step.change);
    const auto* file = std::get_if<FileEdit>(&step.change);
    if (bytes == nullptr && file == nullptr) continue;
    NACRE_ASSIGN(const auto state,
                 bytes != nullptr ? state_of(*directory, *bytes) : state_of(*directory, *file));
    if (state == State::other) {
      return changed_since(
          fmt::format("{} is not as it was left ({})", describe_step(step), step.why));
    }
    any = any || state == State::after;
  }
  return any;
}

// Returns true if some step has been applied and not been undone.
Result<bool> check_all(BackingDirectory& directory, const Database& database,
                       const RepairPlan& plan) {
  bool any = false;
  bool names_sessions = false;
  for (const RepairStep& step : plan.steps) {
    const auto* row = std::get_if<RowEdit>(&step.change);
    const auto* bytes = std::get_if<BytesEdit>(&step.change);
    const auto state = row != nullptr     ? state_of(database, *row)
                       : bytes != nullptr ? state_of(directory, *bytes)
                                          : state_of(directory, std::get<FileEdit>(step.change));
    if (!state) return tl::unexpected(state.error());
    if (*state == State::other) {
      return changed_since(
          fmt::format("{} is not as it was left ({})", describe_step(step), step.why));
    }
    any = any || *state == State::after;
    names_sessions = names_sessions || (row != nullptr && row->table == metadata::Table::system &&
                                        row->key == metadata::system_key_next_session);
  }
  NACRE_ASSIGN(const auto next,
               database.get(metadata::Table::system, metadata::system_key_next_session));
  if (!names_sessions && next && metadata::decode_u64(*next).value_or(0) != plan.next_session) {
    return changed_since("it was mounted for writing");
  }
  return any;
}

}  // namespace

Result<> apply_plan(const std::shared_ptr<BackingDirectory>& directory,
                    const metadata::VolumeKeys& volume, const RepairPlan& plan) {
  return make_changes(directory, volume, plan, Direction::forward);
}

Result<bool> undo_plan(const std::shared_ptr<BackingDirectory>& directory,
                       const metadata::VolumeKeys& volume, const RepairPlan& plan) {
  if (const DatabaseEdit* edit = database_edit_of(plan)) {
    NACRE_TRY(tidy_databases(*directory, volume));
    NACRE_ASSIGN(const bool any, check_with_database(directory, volume, plan, *edit));
    if (!any) return false;
  } else {
    NACRE_ASSIGN(const auto database, Database::open(directory, volume.keys, {.read_only = true}));
    NACRE_ASSIGN(const bool any, check_all(*directory, *database, plan));
    if (!any) return false;
  }
  NACRE_TRY(make_changes(directory, volume, plan, Direction::back));
  return true;
}

}  // namespace nacre::fs
