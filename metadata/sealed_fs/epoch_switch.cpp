// SPDX-License-Identifier: Apache-2.0
#include "metadata/sealed_fs/epoch_switch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/reseal_files.h"
#include "metadata/sealed_fs/sealed_file_system.h"

namespace nacre::metadata {
namespace {

constexpr std::string_view resealed_prefix = "rekey-";
constexpr std::string_view resealed_suffix = ".dbtmp";
constexpr std::size_t copy_piece_bytes = 256u << 10;

bool is_resealed(std::string_view name) {
  return name.starts_with(resealed_prefix) && name.ends_with(resealed_suffix) &&
         name.size() > resealed_prefix.size() + resealed_suffix.size();
}

std::string lasting_path(const std::string& folder, std::string_view name) {
  name.remove_prefix(resealed_prefix.size());
  name.remove_suffix(resealed_suffix.size());
  return fmt::format("{}/{}", folder, name);
}

// Returns the paths that files of the current epoch are to have and do not have yet.
Result<std::vector<std::string>> list_unnamed(BackingDirectory& directory,
                                              const std::string& folder, const KeyTree& keys) {
  std::vector<std::string> paths;
  const std::uint32_t current = keys.current_epoch_number();
  NACRE_ASSIGN(const EpochFormat format, keys.epoch_format(current));
  if (format == EpochFormat::one || !keys.is_rotating()) return paths;
  NACRE_ASSIGN(const auto names, directory.list(folder));
  for (const std::string& name : names) {
    if (!is_resealed(name)) continue;
    NACRE_ASSIGN(const auto fresh, epoch_of_file(directory, fmt::format("{}/{}", folder, name)));
    if (!fresh || *fresh != current) continue;
    const std::string path = lasting_path(folder, name);
    const auto present = epoch_of_file(directory, path);
    if (!present && present.error().code != ErrorCode::not_found) {
      return tl::unexpected(present.error());
    }
    if (!present || !*present || **present != current) paths.push_back(path);
  }
  return paths;
}

Result<void> give_names(BackingDirectory& directory, const std::string& folder,
                        const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    NACRE_TRY(directory.rename(resealed_path(path), path));
  return directory.sync_directory(folder);
}

}  // namespace

Result<void> remove_resealed_files(BackingDirectory& directory, const std::string& folder,
                                   const std::function<bool(const std::string& path)>& is_kept) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  for (const std::string& name : names) {
    if (!is_resealed(name) || (is_kept && is_kept(lasting_path(folder, name)))) continue;
    NACRE_TRY(directory.remove(fmt::format("{}/{}", folder, name)));
  }
  return {};
}

Result<FileSalt> make_resealed_table(BackingDirectory& directory, const std::string& path,
                                     const KeyTree& keys, const KeyTree& next,
                                     engine::Padding padding,
                                     const std::function<Result<void>(const FileSalt&)>& may_use) {
  NACRE_ASSIGN(const auto reader, PageReader::open(directory, path, keys));
  NACRE_TRY(may_use(reader->salt()));
  // The manifest names the table by its salt.
  NACRE_ASSIGN(FileSeal seal, FileSeal::create_with_salt(next, path, padding, reader->salt()));
  NACRE_ASSIGN(const auto writer,
               PageWriter::create_at(directory, resealed_path(path), std::move(seal)));
  Bytes piece(copy_piece_bytes);
  for (std::uint64_t at = 0; at < reader->size();) {
    NACRE_ASSIGN(const std::size_t got, reader->read(at, piece));
    NACRE_TRY(writer->append(ByteView(piece).first(got)));
    at += got;
  }
  NACRE_TRY(writer->sync());
  return reader->salt();
}

Result<bool> is_epoch_switch_unfinished(BackingDirectory& directory, const std::string& folder,
                                        const KeyTree& keys) {
  NACRE_ASSIGN(const auto paths, list_unnamed(directory, folder, keys));
  return !paths.empty();
}

Result<void> finish_epoch_switch(BackingDirectory& directory, const std::string& folder,
                                 const KeyTree& keys) {
  NACRE_ASSIGN(const auto paths, list_unnamed(directory, folder, keys));
  return paths.empty() ? Result<void>() : give_names(directory, folder, paths);
}

Result<void> settle_epoch_switch(BackingDirectory& directory, const std::string& folder,
                                 const KeyTree& keys, bool read_only) {
  if (!read_only) return finish_epoch_switch(directory, folder, keys);
  NACRE_ASSIGN(const bool is_unfinished, is_epoch_switch_unfinished(directory, folder, keys));
  if (!is_unfinished) return {};
  return fail(ErrorCode::read_only,
              fmt::format("{}: a rotation of keys was interrupted when it had just begun, and "
                          "opening the volume for writing ends that: mount it once without -o ro",
                          directory.description()));
}

Result<bool> has_unnamed_files(BackingDirectory& directory, const std::string& folder,
                               std::uint32_t newest_epoch) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  for (const std::string& name : names) {
    if (!is_resealed(name)) continue;
    NACRE_ASSIGN(const auto epoch, epoch_of_file(directory, fmt::format("{}/{}", folder, name)));
    if (epoch && *epoch == newest_epoch) return true;
  }
  return false;
}

void SealedFileSystem::prepare_for_locked(const KeyTree& next) {
  const engine::Sha256Digest fingerprint = next.fingerprint();
  if (prepared_for_ == fingerprint) return;
  prepared_.clear();
  resealed_.clear();
  prepared_for_ = fingerprint;
}

Result<FileSalt> SealedFileSystem::reseal_table(const std::string& path, const KeyTree& next) {
  return make_resealed_table(
      *directory_, path, *keys_, next, padding_, [&](const FileSalt& salt) -> Result<void> {
        const LockGuard lock(prepared_mutex_);
        prepare_for_locked(next);
        if (resealed_.insert(salt).second) return {};
        return fail_in_file(
            ErrorCode::tampered, path,
            "the table was already sealed for the next keys, and another program has removed or "
            "changed the result. No rotation of keys has begun. Try again: a new attempt draws "
            "other keys");
      });
}

// Seals the folder's tables and small files anew, which are never written to any more, and returns
// their paths. A needed file must be among them; any other may be gone or damaged.
Result<SealedFileSystem::Sources> SealedFileSystem::reseal_finished(
    const std::string& folder, const std::set<std::string>& needed, const KeyTree& next) {
  NACRE_ASSIGN(const auto names, directory_->list(folder));
  Sources sources;
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", folder, name);
    const FileClass file_class = parse_file_name(path).file_class;
    const bool is_small = file_class == FileClass::other && !name.ends_with(resealed_suffix);
    if (file_class != FileClass::table && !is_small) continue;
    const auto made = [&]() NACRE_REQUIRES(replacing_mutex_) -> Result<FileSalt> {
      if (!is_small) {
        // The number of a table is given out once, so this is the same table.
        if (const auto salt = prepared_salt(path, next)) return *salt;
        return reseal_table(path, next);
      }
      NACRE_ASSIGN(FileSeal to, FileSeal::create(next, path, padding_));
      ResealChanges changes;
      if (name == "CURRENT") changes.expected_content = current_content();
      NACRE_ASSIGN(const auto fresh,
                   make_resealed_frames(*directory_, path, *keys_, std::move(to), changes));
      static_cast<void>(fresh);
      return FileSalt{};
    }();
    const bool may_fail =
        !made && !needed.contains(name) &&
        (made.error().code == ErrorCode::not_found || made.error().code == ErrorCode::corrupt ||
         made.error().code == ErrorCode::tampered);
    if (may_fail) {
      static_cast<void>(directory_->remove(resealed_path(path)));
      continue;
    }
    if (!made) return tl::unexpected(made.error());
    sources[path] = *made;
  }
  return sources;
}

Result<std::size_t> SealedFileSystem::prepare_switch(const std::string& folder,
                                                     const std::set<std::string>& needed,
                                                     const KeyTree& next,
                                                     const std::function<Result<void>()>& go_on) {
  NACRE_TRY(check_writable(folder));
  {
    const LockGuard lock(prepared_mutex_);
    prepare_for_locked(next);
  }
  std::size_t count = 0;
  for (const std::string& name : needed) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (parse_file_name(path).file_class != FileClass::table) continue;
    {
      const LockGuard lock(prepared_mutex_);
      if (prepared_.contains(path)) continue;
    }
    NACRE_TRY(go_on());
    const auto made = reseal_table(path, next);
    if (!made) {
      const ErrorCode code = made.error().code;
      if (code == ErrorCode::not_found || code == ErrorCode::corrupt ||
          code == ErrorCode::tampered) {
        continue;
      }
      return tl::unexpected(made.error());
    }
    ++count;
    const LockGuard lock(prepared_mutex_);
    prepared_[path] = *made;
  }
  return count;
}

Result<void> SealedFileSystem::abandon_switch(const std::string& folder) {
  // If a switch failed in its last step, the new keyring may be there, and needs these files.
  NACRE_TRY(check_writable(folder));
  const LockGuard lock(prepared_mutex_);
  prepared_.clear();
  return remove_resealed_files(*directory_, folder);
}

Result<void> SealedFileSystem::keep_prepared(const std::string& folder,
                                             const std::set<std::string>& needed,
                                             const KeyTree& next) {
  const LockGuard lock(prepared_mutex_);
  prepare_for_locked(next);
  return remove_resealed_files(
      *directory_, folder, [&](const std::string& path) NACRE_REQUIRES(prepared_mutex_) {
        return prepared_.contains(path) && needed.contains(path.substr(folder.size() + 1));
      });
}

// None if the file is not there as it was made.
std::optional<FileSalt> SealedFileSystem::prepared_salt(const std::string& path,
                                                        const KeyTree& next) {
  const LockGuard lock(prepared_mutex_);
  const auto prepared = prepared_.find(path);
  if (prepared == prepared_.end()) return std::nullopt;
  const auto file = directory_->open(resealed_path(path), OpenMode::read);
  if (!file) return std::nullopt;
  std::array<Byte, file_header_size_bytes> bytes{};
  const auto got = (*file)->read(0, bytes);
  const auto header =
      got ? decode_file_header(ByteView(bytes).first(*got)) : tl::unexpected<Error>(got.error());
  const bool is_ours =
      header && header->salt == prepared->second && header->epoch == next.current_epoch_number();
  return is_ours ? std::optional(prepared->second) : std::nullopt;
}

// What CURRENT says while this database is open.
Bytes SealedFileSystem::current_content() const {
  const std::string name = live_manifest_path_.substr(live_manifest_path_.rfind('/') + 1) + "\n";
  const ByteView bytes = as_bytes(name);
  return {bytes.begin(), bytes.end()};
}

// A table that is open was compared with the manifest when RocksDB opened it. One that was put in
// its place since was not, and would be read in its stead.
Result<void> SealedFileSystem::check_tables_are(const Sources& sources) {
  const LockGuard lock(tables_mutex_);
  for (const auto& known : tables_) {
    const auto reader = known.lock();
    if (reader == nullptr) continue;
    const auto source = sources.find(reader->path());
    if (source == sources.end() || source->second == reader->salt()) continue;
    return fail_in_file(
        ErrorCode::tampered, reader->path(),
        "the file is not the one that the database has: another one was put in its place");
  }
  return {};
}

Result<void> SealedFileSystem::switch_epoch(const std::string& folder,
                                            const std::set<std::string>& needed,
                                            const KeyTree& next,
                                            const std::function<Result<void>()>& commit) {
  NACRE_TRY(check_writable(folder));
  NACRE_TRY(keep_prepared(folder, needed, next));
  LockGuard replacing(replacing_mutex_);
  LockGuard log_lock(log_mutex_);
  const auto manifest = live_manifest_.lock();
  if (manifest == nullptr || live_log_ == nullptr ||
      manifest_->durable().number != manifest->number() || holds_->are_there()) {
    return fail(ErrorCode::busy, "a backup or RocksDB holds files of the database: try again");
  }
  NACRE_ASSIGN(const Sources sources, reseal_finished(folder, needed, next));
  std::vector<std::string> paths;
  for (const auto& [path, salt] : sources)
    paths.push_back(path);
  const std::string log_path = live_log_->path();
  NACRE_ASSIGN(FileSeal log_seal, FileSeal::create(next, log_path, padding_));
  NACRE_ASSIGN(FileSeal manifest_seal, FileSeal::create(next, live_manifest_path_, padding_));
  const ManifestLink log_name{.log = live_log_->name().log, .salt = log_seal.header().salt};
  ManifestState::Durable named{.number = manifest->number(), .salt = manifest_seal.header().salt};
  NACRE_ASSIGN(auto new_manifest,
               manifest->make_resealed(*directory_, *keys_, std::move(manifest_seal), log_name));
  // The logs before it are done.
  LogWitness witness = live_log_->witness();
  witness.previous_salt = {};
  witness.previous_tag = {};
  named.frames = new_manifest.frame_count;
  named.tag = new_manifest.last_tag;
  named.write_to(witness);
  NACRE_ASSIGN(auto new_log,
               live_log_->make_resealed(*directory_, *keys_, std::move(log_seal), witness));
  paths.push_back(live_manifest_path_);
  paths.push_back(log_path);
  NACRE_TRY(directory_->sync_directory(folder));

  // From here on there are two states of the folder, and the keyring says which one counts.
  UniqueLock switching(switch_mutex_);
  NACRE_TRY(check_tables_are(sources));
  auto switched = commit();
  if (switched) switched = give_names(*directory_, folder, paths);
  if (switched) {
    manifest->replace(std::move(new_manifest));
    live_log_->replace(std::move(new_log), witness);
    switched = reopen_tables();
  }
  if (!switched) fail_stop_->stop(switched.error());
  return switched;
}

Result<void> SealedFileSystem::reopen_tables() {
  const LockGuard lock(tables_mutex_);
  for (const auto& known : tables_) {
    const auto reader = known.lock();
    if (reader == nullptr) continue;
    const auto reopened = reader->reopen(*directory_, *keys_);
    // A table that is gone is still open in a reader that began before it went.
    if (!reopened && reopened.error().code != ErrorCode::not_found) return reopened;
  }
  return {};
}

Result<std::shared_ptr<PageReader>> SealedFileSystem::open_table(const std::string& path) {
  const SharedLock switching(switch_mutex_);
  NACRE_ASSIGN(auto opened, PageReader::open(*directory_, path, *keys_));
  std::shared_ptr<PageReader> reader = std::move(opened);
  const LockGuard lock(tables_mutex_);
  if (tables_.size() >= tables_swept_at_) {
    std::erase_if(tables_, [](const auto& known) { return known.expired(); });
    tables_swept_at_ = 2 * tables_.size() + 64;
  }
  tables_.push_back(reader);
  return reader;
}

}  // namespace nacre::metadata
