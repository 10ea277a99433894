// SPDX-License-Identifier: Apache-2.0
#include "fs/backup/backup_target.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "metadata/backing/two_copies.h"
#include "metadata/keys/keyring.h"
#include "metadata/superblock.h"
#include "metadata/text/text_bytes.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

namespace {

using nlohmann::json;

constexpr std::string_view format_name = "nacre backup";
constexpr int mark_version = 1;
constexpr std::size_t mark_size_bytes_max = 64u << 10;
constexpr std::size_t header_size_bytes = 64;
constexpr std::string_view advice = "nothing was changed; give an empty folder";

template <typename... Args>
tl::unexpected<Error> refuse(ErrorCode code, metadata::BackingDirectory& target,
                             fmt::format_string<Args...> why, Args&&... args) {
  return fail(code, fmt::format("{}: {}; {}", target.description(),
                                fmt::format(why, std::forward<Args>(args)...), advice));
}

Result<BackupMark> parse_mark(ByteView text) {
  const auto bad = [] { return fail(ErrorCode::corrupt, "nacre backup did not write it"); };
  const auto object = json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object()) return bad();
  const auto text_of = [&](const char* name) {
    const auto at = object.find(name);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const auto version = object.find("version");
  if (text_of("format") != format_name || version == object.end() || *version != mark_version) {
    return bad();
  }
  BackupMark mark{.finished = text_of("finished")};
  if (!metadata::from_hex(text_of("volume_id"), mark.volume_id)) return bad();
  const auto currents = object.find("current");
  if (currents == object.end() || !currents->is_array()) return bad();
  for (const auto& header : *currents) {
    Bytes bytes(header_size_bytes);
    if (!header.is_string() || !metadata::from_hex(header.get<std::string>(), bytes)) return bad();
    mark.current_headers.push_back(std::move(bytes));
  }
  return mark;
}

Result<std::optional<BackupMark>> load_mark(metadata::BackingDirectory& target) {
  const auto text = metadata::read_file(target, backup_file, mark_size_bytes_max);
  if (!text && text.error().code == ErrorCode::not_found) return std::optional<BackupMark>();
  if (!text) return tl::unexpected(text.error());
  auto mark = parse_mark(*text);
  if (!mark) {
    return refuse(mark.error().code, target, "the file '{}' in this folder is damaged: {}",
                  backup_file, mark.error().message);
  }
  return std::optional(std::move(*mark));
}

// Also true if a backup was interrupted in its very first step.
Result<bool> holds_nothing(metadata::BackingDirectory& target, metadata::DirectoryState state) {
  if (state == metadata::DirectoryState::empty) return true;
  NACRE_ASSIGN(const auto names, target.list(""));
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name == metadata::lock_file || name == "lost+found" ||
           name == fmt::format("{}.new", backup_file);
  });
}

// The generation, or 0 if neither copy can be read. A target with 0 is not newer than the source,
// so the backup writes it anew.
template <typename Find>
std::uint64_t generation(metadata::BackingDirectory& directory, Find find) {
  const auto found = find(directory);
  return found ? found->generation : 0;
}

Result<> check_generations(metadata::BackingDirectory& source, metadata::BackingDirectory& target) {
  const auto superblock = [](metadata::BackingDirectory& directory) {
    return metadata::find_superblock(directory).map(
        [](const auto& found) { return found.superblock.claims; });
  };
  const auto keyring = [](metadata::BackingDirectory& directory) {
    return metadata::find_keyring(directory).map(
        [](const auto& found) { return found.keyring.claims; });
  };
  if (generation(target, superblock) > generation(source, superblock) ||
      generation(target, keyring) > generation(source, keyring)) {
    return refuse(ErrorCode::exists, target,
                  "this folder holds a later superblock or keyring than {}: the volume was put "
                  "back to an older state, or the backup was used by itself",
                  source.description());
  }
  return {};
}

// A backup copies the newer keyring first, and this keyring must open the earlier state until that
// is replaced. After a rotation it cannot open it, so the backup is refused. If it went on, files
// under keys that were rotated away would stay readable in the target.
Result<> check_epochs(metadata::BackingDirectory& source, metadata::BackingDirectory& target) {
  const auto now = metadata::find_keyring(source);
  const auto then = metadata::find_keyring(target);
  if (!now || !then) return {};  // copying the keyring reports what is wrong with it
  const auto& epochs = now->keyring.claims.epochs;
  for (const auto& old : then->keyring.claims.epochs) {
    const auto is_there = [&](const auto& epoch) { return epoch.number == old.number; };
    if (std::none_of(epochs.begin(), epochs.end(), is_there)) {
      return refuse(ErrorCode::exists, target,
                    "the keys of {} were rotated since the last backup, and the new keyring does "
                    "not open what this folder holds",
                    source.description());
    }
  }
  return {};
}

}  // namespace

Bytes header_of(ByteView content) {
  const auto header = content.first(std::min(content.size(), header_size_bytes));
  return Bytes(header.begin(), header.end());
}

Result<> save_backup_mark(metadata::BackingDirectory& target, const BackupMark& mark) {
  json object = {{"format", format_name},
                 {"version", mark_version},
                 {"volume_id", metadata::to_hex(mark.volume_id)},
                 {"finished", mark.finished},
                 {"current", json::array()}};
  for (const Bytes& header : mark.current_headers)
    object["current"].push_back(metadata::to_hex(header));
  return metadata::replace_file(target, backup_file, as_bytes(object.dump(2) + "\n"));
}

Result<BackupTarget> check_backup_target(metadata::BackingDirectory& source,
                                         metadata::BackingDirectory& target) {
  NACRE_ASSIGN(const auto superblock, metadata::find_superblock(source));
  const engine::VolumeId volume_id = superblock.superblock.claims.volume_id;
  NACRE_ASSIGN(const auto state, metadata::inspect_directory(target));
  NACRE_ASSIGN(auto mark, load_mark(target));
  if (mark && mark->volume_id != volume_id) {
    return refuse(ErrorCode::exists, target, "this folder holds a backup of another volume ({})",
                  metadata::to_hex(mark->volume_id));
  }
  if (state != metadata::DirectoryState::volume) {
    if (mark) return BackupTarget{.is_first = true, .mark = std::move(*mark)};
    NACRE_ASSIGN(const bool is_empty, holds_nothing(target, state));
    if (!is_empty) {
      return refuse(ErrorCode::not_empty, target, "this folder holds other files");
    }
    return BackupTarget{.is_first = true, .mark = {.volume_id = volume_id}};
  }
  if (!mark) {
    return refuse(ErrorCode::exists, target,
                  "this folder holds a volume that is no backup: 'nacre backup' did not make it");
  }
  const auto current =
      metadata::read_file(target, fmt::format("{}/CURRENT", metadata::database_folder));
  if (!current) return tl::unexpected(current.error());
  const auto& known = mark->current_headers;
  if (std::find(known.begin(), known.end(), header_of(*current)) == known.end()) {
    return refuse(
        ErrorCode::exists, target,
        "this backup was mounted for writing since the last run, so it is a volume of its own now");
  }
  NACRE_TRY(check_generations(source, target));
  NACRE_TRY(check_epochs(source, target));
  return BackupTarget{.is_first = false, .mark = std::move(*mark)};
}

}  // namespace nacre::fs
