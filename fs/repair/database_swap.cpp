// SPDX-License-Identifier: Apache-2.0
#include "fs/repair/database_swap.h"

#include <algorithm>

#include <fmt/format.h>

#include "fs/repair/text_digest.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::fs {

using metadata::BackingDirectory;
using metadata::Table;

namespace {

constexpr std::size_t header_size_bytes = 64;
constexpr std::size_t swapped_piece_size_bytes = 1u << 20;
constexpr std::string_view folder_prefix = "db.";
constexpr std::string_view moving_folder = "db.moving";

Bytes bytes_of(const engine::Sha256Digest& digest) {
  return {digest.begin(), digest.end()};
}

}  // namespace

std::string database_folder_of(std::string_view plan_name) {
  return fmt::format("{}{}", folder_prefix, plan_name);
}

Result<Bytes> fingerprint_of(BackingDirectory& directory, std::string_view folder) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  TextDigest digest;
  for (const auto& name : names) {
    const std::string path = fmt::format("{}/{}", folder, name);
    NACRE_ASSIGN(const auto file, directory.open(path, metadata::OpenMode::read));
    NACRE_ASSIGN(const std::uint64_t size, file->size());
    Bytes header(header_size_bytes);
    // A header that the disk cannot read counts as empty, each time.
    header.resize(file->read(0, header).value_or(0));
    digest.add(name);
    digest.add(fmt::format("{}", size));
    digest.add(as_text(header));
  }
  return bytes_of(digest.take());
}

Result<Bytes> digest_of_content(BackingDirectory& directory, std::string_view folder) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  TextDigest digest;
  Bytes piece(swapped_piece_size_bytes);
  for (const auto& name : names) {
    NACRE_ASSIGN(const auto file,
                 directory.open(fmt::format("{}/{}", folder, name), metadata::OpenMode::read));
    NACRE_ASSIGN(const std::uint64_t size, file->size());
    digest.add(name);
    digest.add(fmt::format("{}", size));
    for (std::uint64_t at = 0; at < size; at += piece.size()) {
      const auto got = file->read(at, piece);
      if (!got && got.error().code == ErrorCode::out_of_memory) {
        return tl::unexpected(got.error());
      }
      digest.add(got ? as_text(ByteView(piece).first(*got)) : "cannot be read");
    }
  }
  return bytes_of(digest.take());
}

Result<Bytes> digest_of_rows(const std::shared_ptr<BackingDirectory>& directory,
                             const metadata::VolumeKeys& volume, const RepairPlan* undone) {
  NACRE_ASSIGN(const auto database,
               metadata::Database::open(directory, volume.keys, {.read_only = true}));
  if (undone != nullptr) {
    for (const RepairStep& step : undone->steps) {
      const auto* edit = std::get_if<RowEdit>(&step.change);
      if (edit == nullptr) continue;
      if (edit->before) {
        database->put(edit->table, edit->key, *edit->before);
      } else {
        database->erase(edit->table, edit->key);
      }
    }
  }
  TextDigest digest;
  for (std::size_t i = 0; i < metadata::table_count; ++i) {
    const auto table = static_cast<Table>(i);
    digest.add(metadata::to_string(table));
    NACRE_TRY(database->scan(table, "", "", [&](std::string_view key, std::string_view value) {
      digest.add(key);
      digest.add(value);
      return true;
    }));
  }
  return bytes_of(digest.take());
}

Result<DatabaseState> state_of_database(const std::shared_ptr<BackingDirectory>& directory,
                                        const metadata::VolumeKeys& volume, const RepairPlan& plan,
                                        const DatabaseEdit& edit) {
  NACRE_ASSIGN(const Bytes now, fingerprint_of(*directory, metadata::database_folder));
  if (now == edit.before) return DatabaseState::before;
  NACRE_ASSIGN(const Bytes rows, digest_of_rows(directory, volume, &plan));
  return rows == edit.after ? DatabaseState::after : DatabaseState::other;
}

Result<> swap_databases(BackingDirectory& directory, const DatabaseEdit& edit) {
  NACRE_TRY(directory.rename(metadata::database_folder, moving_folder));
  NACRE_TRY(directory.rename(edit.folder, metadata::database_folder));
  NACRE_TRY(directory.rename(moving_folder, edit.folder));
  return directory.sync_directory("");
}

Result<> remove_folder(BackingDirectory& directory, const std::string& folder) {
  const auto names = directory.list(folder);
  if (!names && names.error().code == ErrorCode::not_found) return {};
  if (!names) return tl::unexpected(names.error());
  for (const auto& name : *names)
    NACRE_TRY(directory.remove(fmt::format("{}/{}", folder, name)));
  NACRE_TRY(directory.remove(folder));
  return directory.sync_directory("");
}

// Ends an interrupted swap. The database under the temporary name gets its place back; or, if the
// other one is there already, the name that its plan gives it.
static Result<> end_swap(BackingDirectory& directory, const metadata::VolumeKeys& volume,
                         const std::vector<std::string>& names) {
  const auto has = [&](std::string_view name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  std::string place(metadata::database_folder);
  if (has(place)) {
    NACRE_ASSIGN(const Bytes moved, fingerprint_of(directory, moving_folder));
    place.clear();
    const auto plans = directory.list(repair_folder);
    for (const auto& name : plans ? *plans : std::vector<std::string>()) {
      const auto plan = load_plan(directory, *volume.keys, name);
      const auto* edit = plan ? database_edit_of(*plan) : nullptr;
      // While a plan is undone, the new database is the one under the temporary name.
      if (edit != nullptr && !has(edit->folder) && (edit->before == moved || place.empty()))
        place = edit->folder;
    }
  }
  if (place.empty()) return {};
  NACRE_TRY(directory.rename(moving_folder, place));
  return directory.sync_directory("");
}

bool is_swap_interrupted(BackingDirectory& directory) {
  const auto names = directory.list("");
  return names && std::find(names->begin(), names->end(), moving_folder) != names->end();
}

Result<> tidy_databases(BackingDirectory& directory, const metadata::VolumeKeys& volume) {
  NACRE_ASSIGN(auto names, directory.list(""));
  if (std::binary_search(names.begin(), names.end(), moving_folder)) {
    NACRE_TRY(end_swap(directory, volume, names));
    NACRE_ASSIGN(names, directory.list(""));
  }
  const auto now = fingerprint_of(directory, metadata::database_folder);
  if (!now) return {};
  for (const auto& name : names) {
    if (!name.starts_with(folder_prefix) || name == moving_folder) continue;
    const auto plan = load_plan(directory, *volume.keys, name.substr(folder_prefix.size()));
    // A plan that cannot be read does not say to whom the folder belongs.
    if (!plan && plan.error().code != ErrorCode::not_found) continue;
    // Without a plan, or with one whose old db/ is still in place, this folder never took db/'s
    // place.
    const auto* edit = plan ? database_edit_of(*plan) : nullptr;
    if (!plan || (edit != nullptr && edit->before == *now))
      NACRE_TRY(remove_folder(directory, name));
  }
  return {};
}

const DatabaseEdit* database_edit_of(const RepairPlan& plan) {
  for (const RepairStep& step : plan.steps) {
    if (const auto* edit = std::get_if<DatabaseEdit>(&step.change)) return edit;
  }
  return nullptr;
}

}  // namespace nacre::fs
