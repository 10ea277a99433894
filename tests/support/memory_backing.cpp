// SPDX-License-Identifier: Apache-2.0
// See memory_backing.h. Folders and files keep what is durable apart by themselves
// (memory_folder.h, memory_file.h); operations are numbered and failed in memory_backing_state.cpp;
// here they are led there.
#include "tests/support/memory_backing.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <random>

#include "metadata/backing/path.h"
#include "tests/support/memory_backing_state.h"
#include "tests/support/memory_file.h"
#include "tests/support/memory_folder.h"

namespace nacre::tests {

using metadata::BackingFile;
using metadata::OpenMode;

namespace {

constexpr std::uint64_t unlimited_total_bytes = 1ull << 40;  // what space() says then

}  // namespace

MemoryBacking::MemoryBacking(std::shared_ptr<State> state) : state_(std::move(state)) {}
MemoryBacking::~MemoryBacking() = default;

std::shared_ptr<MemoryBacking> MemoryBacking::create() {
  return std::shared_ptr<MemoryBacking>(new MemoryBacking(std::make_shared<State>()));
}

std::shared_ptr<MemoryBacking> MemoryBacking::power_loss(std::uint64_t seed) const {
  Survival survival = Survival::random;
  if (seed == 0) survival = Survival::nothing;
  if (seed == 1) survival = Survival::everything;
  std::mt19937_64 random(seed);
  auto survivor = create();
  const std::lock_guard lock(state_->mutex);
  survivor->state_->root = state_->root->survive(survival, random);
  survivor->state_->capacity_bytes = state_->capacity_bytes;
  return survivor;
}

std::shared_ptr<MemoryBacking> MemoryBacking::process_kill() const {
  return power_loss(1);
}

std::uint64_t MemoryBacking::change_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->change_count;
}

std::uint64_t MemoryBacking::operation_count(std::uint32_t operations) const {
  const std::lock_guard lock(state_->mutex);
  std::uint64_t sum = 0;
  for (const auto& [operation, count] : state_->operation_counts) {
    if ((operation & operations) != 0) sum += count;
  }
  return sum;
}

void MemoryBacking::fail_at(std::uint64_t number) {
  const std::lock_guard lock(state_->mutex);
  state_->fail_at = number;
}

void MemoryBacking::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopped = true;
}

void MemoryBacking::inject(InjectedFailure failure) {
  const std::lock_guard lock(state_->mutex);
  state_->failures.push_back(std::move(failure));
}

void MemoryBacking::clear_failures() {
  const std::lock_guard lock(state_->mutex);
  state_->failures.clear();
  state_->fail_at = ~0ull;
  state_->stopped = false;
}

void MemoryBacking::set_read_only(bool read_only) {
  const std::lock_guard lock(state_->mutex);
  state_->read_only = read_only;
}

void MemoryBacking::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->capacity_bytes = bytes;
}

void MemoryBacking::set_quota(std::uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->quota_bytes = bytes;
}

std::uint64_t MemoryBacking::open_file_count() const {
  return state_->open_file_count;
}

void MemoryBacking::watch(Watcher watcher) {
  auto watching = watcher ? std::make_shared<const Watcher>(std::move(watcher)) : nullptr;
  const std::lock_guard lock(state_->mutex);
  state_->watcher = std::move(watching);
}

std::vector<std::string> MemoryBacking::files() const {
  std::vector<std::string> paths;
  const std::lock_guard lock(state_->mutex);
  state_->root->list_files("", paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::optional<Bytes> MemoryBacking::load(std::string_view path) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->entry(path);
  if (!found || !found->file) return std::nullopt;
  Bytes content(found->file->size());
  found->file->read(0, content);
  return content;
}

void MemoryBacking::set_bad_block(std::string_view path, std::uint64_t offset) {
  const std::lock_guard lock(state_->mutex);
  state_->entry(path)->file->set_bad_block(offset);
}

void MemoryBacking::store(std::string_view path, ByteView content) {
  const auto parts = metadata::split_path(path).value();
  const std::lock_guard lock(state_->mutex);
  auto parent = state_->root;
  if (!parts.folder.empty()) {
    const FolderEntry* folder = parent->find(parts.folder);
    if (!folder || !folder->folder) {
      const FolderEntry made{.file = nullptr, .folder = std::make_shared<MemoryFolder>()};
      parent->place(std::string(parts.folder), made);
      parent = made.folder;
    } else {
      parent = folder->folder;
    }
  }
  SparseBytes bytes;
  bytes.write(0, content);
  parent->place(std::string(parts.name),
                {.file = std::make_shared<MemoryFile>(std::move(bytes)), .folder = nullptr});
}

void MemoryBacking::erase(std::string_view path) {
  const auto parts = metadata::split_path(path).value();
  const std::lock_guard lock(state_->mutex);
  if (const auto parent = state_->folder(parts.folder)) {
    (*parent)->place(std::string(parts.name), {});
  }
}

Result<std::unique_ptr<BackingFile>> MemoryBacking::open(std::string_view path, OpenMode mode) {
  NACRE_ASSIGN(const auto parts, metadata::split_path(path));
  const bool creates = mode == OpenMode::create_new || mode == OpenMode::create_or_empty;
  if (creates) state_->announce(change_create, path);
  const std::lock_guard lock(state_->mutex);
  const auto admission = state_->admit(creates ? +change_create : operation_look, path);
  if (admission.error && !admission.takes_effect) return tl::unexpected(*admission.error);

  NACRE_ASSIGN(MemoryFolder * parent, state_->folder(parts.folder));
  const FolderEntry* found = parent->find(parts.name);
  if (found && !found->file) {
    return fail(ErrorCode::is_directory, fmt::format("(memory)/{}: is a folder", path));
  }
  if (found && mode == OpenMode::create_new) {
    return fail(ErrorCode::exists, fmt::format("(memory)/{}: exists already", path));
  }
  if (!found && !creates) {
    return fail(ErrorCode::not_found, fmt::format("(memory)/{}: no such file", path));
  }
  std::shared_ptr<MemoryFile> file = found ? found->file : std::make_shared<MemoryFile>();
  if (!found) {
    parent->change({{std::string(parts.name), {.file = file, .folder = nullptr}}});
  } else if (mode == OpenMode::create_or_empty) {
    file->truncate(0);
  }
  if (admission.error) return tl::unexpected(*admission.error);
  return open_memory_file(state_, std::move(file), std::string(path), mode != OpenMode::read);
}

Result<void> MemoryBacking::remove(std::string_view path) {
  NACRE_ASSIGN(const auto parts, metadata::split_path(path));
  state_->announce(change_remove, path);
  const std::lock_guard lock(state_->mutex);
  const auto admission = state_->admit(change_remove, path);
  if (admission.takes_effect) {
    NACRE_ASSIGN(const FolderEntry found, state_->entry(path));
    if (found.folder && !found.folder->entries().empty()) {
      return fail(ErrorCode::not_empty, fmt::format("(memory)/{}: is not empty", path));
    }
    NACRE_ASSIGN(MemoryFolder * parent, state_->folder(parts.folder));
    parent->change({{std::string(parts.name), {}}});
  }
  if (admission.error) return tl::unexpected(*admission.error);
  return {};
}

Result<void> MemoryBacking::rename(std::string_view from, std::string_view to) {
  NACRE_ASSIGN(const auto from_parts, metadata::split_path(from));
  NACRE_ASSIGN(const auto to_parts, metadata::split_path(to));
  NACRE_TRY(metadata::check_same_folder(from, to));
  state_->announce(change_rename, from);
  const std::lock_guard lock(state_->mutex);
  const auto admission = state_->admit(change_rename, from);
  if (admission.takes_effect) {
    NACRE_ASSIGN(FolderEntry moved, state_->entry(from));
    NACRE_ASSIGN(MemoryFolder * parent, state_->folder(from_parts.folder));
    const FolderEntry* replaced = parent->find(to_parts.name);
    // A folder gets a name that is free.
    if (replaced && (moved.folder || !replaced->file)) {
      return fail(ErrorCode::is_directory, fmt::format("(memory)/{}: a folder is in it", from));
    }
    if (from != to) {
      parent->change(
          {{std::string(from_parts.name), {}}, {std::string(to_parts.name), std::move(moved)}});
    }
  }
  if (admission.error) return tl::unexpected(*admission.error);
  return {};
}

Result<void> MemoryBacking::make_directory(std::string_view path) {
  NACRE_TRY(metadata::check_top_folder(path));
  const std::lock_guard lock(state_->mutex);
  const FolderEntry* found = state_->root->find(path);
  if (found && found->file) {
    return fail(ErrorCode::not_directory, fmt::format("(memory)/{}: is a file", path));
  }
  const auto admission = state_->admit(change_make_directory, path);
  const bool exists_already =
      found && (!admission.error || admission.error->code == ErrorCode::read_only);
  if (exists_already) return {};
  if (admission.takes_effect && !found) {
    state_->root->change(
        {{std::string(path), {.file = nullptr, .folder = std::make_shared<MemoryFolder>()}}});
  }
  if (admission.error) return tl::unexpected(*admission.error);
  return {};
}

Result<bool> MemoryBacking::exists(std::string_view path) {
  const std::lock_guard lock(state_->mutex);
  if (auto admission = state_->admit(operation_look, path); admission.error) {
    return tl::unexpected(*admission.error);
  }
  const auto found = state_->entry(path);
  if (!found && found.error().code != ErrorCode::not_found) return tl::unexpected(found.error());
  return found.has_value();
}

Result<std::uint64_t> MemoryBacking::file_size(std::string_view path) {
  const std::lock_guard lock(state_->mutex);
  if (auto admission = state_->admit(operation_look, path); admission.error) {
    return tl::unexpected(*admission.error);
  }
  NACRE_ASSIGN(const FolderEntry found, state_->entry(path));
  if (!found.file) {
    return fail(ErrorCode::is_directory, fmt::format("(memory)/{}: is a folder", path));
  }
  return found.file->size();
}

Result<std::vector<std::string>> MemoryBacking::list(std::string_view folder) {
  const std::lock_guard lock(state_->mutex);
  if (auto admission = state_->admit(operation_look, folder); admission.error) {
    return tl::unexpected(*admission.error);
  }
  NACRE_ASSIGN(const MemoryFolder* found, state_->folder(folder));
  std::vector<std::string> names;
  for (const auto& [name, entry] : found->entries())
    names.push_back(name);
  return names;
}

Result<void> MemoryBacking::sync_directory(std::string_view folder) {
  state_->announce(change_sync_directory, folder);
  const std::lock_guard lock(state_->mutex);
  const auto admission = state_->admit(change_sync_directory, folder);
  if (admission.error) return tl::unexpected(*admission.error);
  NACRE_ASSIGN(MemoryFolder * found, state_->folder(folder));
  found->sync();
  return {};
}

Result<metadata::BackingSpace> MemoryBacking::space() {
  const std::lock_guard lock(state_->mutex);
  if (auto admission = state_->admit(operation_look, ""); admission.error) {
    return tl::unexpected(*admission.error);
  }
  const std::uint64_t used = state_->root->used_bytes();
  const std::uint64_t total =
      state_->capacity_bytes == unlimited_bytes ? unlimited_total_bytes : state_->capacity_bytes;
  const std::uint64_t free = total > used ? total - used : 0;
  return metadata::BackingSpace{
      .total_bytes = total, .free_bytes = free, .available_bytes = free, .free_files = 1u << 20};
}

}  // namespace nacre::tests
