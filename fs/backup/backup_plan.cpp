// SPDX-License-Identifier: Apache-2.0
// Two files are the same if they have the same name, size and header. A header holds a salt, or the
// number and the write session of a segment; and below the committed size no byte ever changes.
#include "fs/backup/backup_plan.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "fs/backup/backup_target.h"
#include "fs/store/segment_table.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

namespace {

const std::string old_current_path = fmt::format("{}/CURRENT", metadata::database_folder);

// The number in "db/000012.log" or "db/MANIFEST-000012"; 0 for other names.
std::uint64_t number_of(std::string_view path, std::string_view before, std::string_view behind) {
  const std::string_view name = path.substr(path.find('/') + 1);
  if (!name.starts_with(before) || !name.ends_with(behind)) return 0;
  std::uint64_t number = 0;
  std::from_chars(name.data() + before.size(), name.data() + name.size() - behind.size(), number);
  return number;
}
std::uint64_t log_number_of(std::string_view path) {
  return number_of(path, "", ".log");
}
std::uint64_t manifest_number_of(std::string_view path) {
  return number_of(path, "MANIFEST-", "");
}

// What tells a file from another one of the same name. If there is no file, size is 0 and the
// header is empty.
struct FileIdentity {
  bool exists = false;
  Bytes header;
  std::uint64_t size = 0;
};

Result<FileIdentity> identity_of(metadata::BackingDirectory& directory, const std::string& path) {
  auto file = directory.open(path, metadata::OpenMode::read);
  if (!file && file.error().code == ErrorCode::not_found) return FileIdentity{};
  if (!file) return tl::unexpected(file.error());
  FileIdentity identity{.exists = true};
  NACRE_ASSIGN(identity.size, (*file)->size());
  std::array<Byte, metadata::segment_header_size_bytes> bytes{};
  NACRE_ASSIGN(const std::size_t count, (*file)->read(0, bytes));
  identity.header = header_of(ByteView(bytes).first(count));
  return identity;
}

class Planner {
 public:
  Planner(metadata::BackingDirectory& source, metadata::BackingDirectory& target, bool is_first)
      : source_(source), target_(target), is_first_(is_first) {}

  Result<BackupPlan> make(const BackupSnapshot& snapshot) {
    for (const BackupFile& file : snapshot.files) {
      plan_.wanted.insert(file.path);
      plan_.total_bytes += file.size;
      NACRE_TRY(file.path.starts_with(metadata::segment_folder) ? add_segment(file)
                                                                : add_database_file(file));
    }
    plan_.wanted.insert(old_current_path);
    plan_.total_bytes += snapshot.current.size();
    const auto current = metadata::read_file(target_, old_current_path);
    plan_.replaces_current = !current || *current != snapshot.current;
    if (!is_first_) NACRE_TRY(check_numbers(snapshot));
    return std::move(plan_);
  }

 private:
  void copy(const BackupFile& file, CopyStep step) {
    plan_.copies.push_back({.file = file, .step = step});
    plan_.copy_bytes += file.size;
  }

  Result<FileIdentity> source_identity(const BackupFile& file) {
    NACRE_ASSIGN(auto identity, identity_of(source_, file.path));
    if (!identity.exists || identity.size < file.size) {
      return fail(ErrorCode::stale,
                  fmt::format("{}/{} is gone or shorter than it was: the volume was unmounted, or "
                              "the file was changed; run nacre backup again",
                              source_.description(), file.path));
    }
    return identity;
  }

  Result<> add_segment(const BackupFile& file) {
    NACRE_ASSIGN(const auto wanted, source_identity(file));
    NACRE_ASSIGN(const auto there, identity_of(target_, file.path));
    const bool same = there.exists && there.header == wanted.header;
    if (same && there.size == file.size) return {};
    if (is_first_ || same) {
      copy(file, CopyStep::segment);
      return {};
    }
    NACRE_ASSIGN(const auto arriving, identity_of(target_, file.path + ".new"));
    if (arriving.exists && arriving.header == wanted.header && arriving.size == file.size) {
      plan_.arrived.push_back(file.path);
      return {};
    }
    copy(file, CopyStep::arriving_segment);
    return {};
  }

  Result<> add_database_file(const BackupFile& file) {
    NACRE_ASSIGN(const auto wanted, source_identity(file));
    NACRE_ASSIGN(const auto there, identity_of(target_, file.path));
    const bool same = there.exists && there.header == wanted.header;
    if (same && there.size == file.size) return {};
    if (there.exists && !same && !is_first_) return refuse_branch(file.path);
    if (is_first_) {
      copy(file, CopyStep::table);
    } else if (log_number_of(file.path) != 0) {
      copy(file, CopyStep::log);
    } else {
      copy(file, there.exists && manifest_number_of(file.path) != 0 ? CopyStep::manifest
                                                                    : CopyStep::table);
    }
    return {};
  }

  // Refuses a target with numbers that the source never gave out: numbers of files only grow.
  Result<> check_numbers(const BackupSnapshot& snapshot) {
    std::uint64_t log = 0;
    std::uint64_t manifest = 0;
    for (const BackupFile& file : snapshot.files) {
      log = std::max(log, log_number_of(file.path));
      manifest = std::max(manifest, manifest_number_of(file.path));
    }
    NACRE_ASSIGN(const auto names, target_.list(metadata::database_folder));
    for (const std::string& name : names) {
      const std::string path = fmt::format("{}/{}", metadata::database_folder, name);
      if (log_number_of(path) > log || manifest_number_of(path) > manifest) {
        return refuse_branch(path);
      }
    }
    return {};
  }

  tl::unexpected<Error> refuse_branch(const std::string& path) {
    return fail(
        ErrorCode::exists,
        fmt::format(
            "{}: this folder holds a later state than {} has, or one of another branch ({} tells): "
            "the volume was put back to an older state; nothing was changed; give an empty folder",
            target_.description(), source_.description(), path));
  }

  metadata::BackingDirectory& source_;
  metadata::BackingDirectory& target_;
  const bool is_first_;
  BackupPlan plan_;
};

}  // namespace

Result<BackupPlan> plan_backup(metadata::BackingDirectory& source, const BackupSource& what,
                               metadata::BackingDirectory& target, bool is_first) {
  return Planner(source, target, is_first).make(what.snapshot);
}

}  // namespace nacre::fs
