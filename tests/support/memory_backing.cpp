// SPDX-License-Identifier: Apache-2.0
// See memory_backing.h. Folders and files keep what is durable apart by themselves
// (memory_folder.h, memory_file.h); here operations are numbered, failed, and led to them.
#include "tests/support/memory_backing.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>

#include "metadata/backing/path.h"
#include "tests/support/memory_file.h"
#include "tests/support/memory_folder.h"

namespace nacre::tests {

using metadata::BackingFile;
using metadata::OpenMode;

namespace {

constexpr std::uint64_t unlimited = ~0ull;
constexpr std::uint32_t operation_look = 0;  // at names and sizes: neither numbered nor injectable
constexpr std::uint64_t unlimited_total_bytes = 1ull << 40;  // what space() says then

// What becomes of an operation.
struct Admission {
  std::optional<Error> error;
  bool takes_effect = true;
  bool is_partial = false;
};

}  // namespace

struct MemoryBacking::State {
  mutable std::mutex mutex;
  std::shared_ptr<MemoryFolder> root = std::make_shared<MemoryFolder>();
  std::uint64_t change_count = 0;
  std::map<std::uint32_t, std::uint64_t> operation_counts;
  std::uint64_t fail_at = unlimited;
  bool stopped = false;
  bool read_only = false;
  std::uint64_t capacity_bytes = unlimited;
  std::uint64_t quota_bytes = unlimited;
  std::atomic<std::uint64_t> open_file_count = 0;
  std::vector<InjectedFailure> failures;
  std::shared_ptr<const Watcher> watcher;

  // Without the mutex.
  void announce(std::uint32_t operation, std::string_view path) const;
  // All below with mutex held.
  Admission admit(std::uint32_t operation, std::string_view path);
  Result<MemoryFolder*> folder(std::string_view name) const;
  Result<FolderEntry> entry(std::string_view path) const;
  Result<void> check_space(const MemoryFile& file, std::uint64_t size) const;
};

void MemoryBacking::State::announce(std::uint32_t operation, std::string_view path) const {
  std::shared_ptr<const Watcher> watching;
  {
    const std::lock_guard lock(mutex);
    watching = watcher;
  }
  if (watching) (*watching)(operation, path);
}

Admission MemoryBacking::State::admit(std::uint32_t operation, std::string_view path) {
  const bool is_change = (operation & change_any) != 0;
  const auto error = [&](ErrorCode code, std::string_view why) {
    return Error{code, fmt::format("(memory)/{}: {}", path, why)};
  };
  const std::uint64_t number = change_count;
  if (is_change) ++change_count;
  ++operation_counts[operation];
  if (stopped || number > fail_at) {
    return {.error = error(ErrorCode::io, "the medium is gone"), .takes_effect = false};
  }
  if (is_change && number == fail_at) {
    // Under way when the medium went: its effect is there, but nothing vouches for it.
    const bool is_sync = (operation & (change_sync | change_sync_directory)) != 0;
    return {.error = error(ErrorCode::io, "the medium went"), .takes_effect = !is_sync};
  }
  for (InjectedFailure& failure : failures) {
    if ((failure.operations & operation) == 0 ||
        path.find(failure.path_part) == std::string_view::npos) {
      continue;
    }
    if (failure.skip > 0) {
      --failure.skip;
      continue;
    }
    if (failure.count == 0) continue;
    --failure.count;
    const bool is_partial = failure.partial && operation == change_write;
    return {.error = error(failure.code, "an injected failure"),
            .takes_effect = is_partial,
            .is_partial = is_partial};
  }
  constexpr std::uint32_t harmless = change_sync | change_sync_directory;
  if (read_only && is_change && (operation & harmless) == 0) {
    return {.error = error(ErrorCode::read_only, "the medium is read-only"), .takes_effect = false};
  }
  return {};
}

Result<MemoryFolder*> MemoryBacking::State::folder(std::string_view name) const {
  NACRE_TRY(metadata::check_folder(name));
  if (name.empty()) return root.get();
  const FolderEntry* entry = root->find(name);
  if (!entry) return fail(ErrorCode::not_found, fmt::format("(memory)/{}: no such folder", name));
  if (!entry->folder) {
    return fail(ErrorCode::not_directory, fmt::format("(memory)/{}: not a folder", name));
  }
  return entry->folder.get();
}

Result<FolderEntry> MemoryBacking::State::entry(std::string_view path) const {
  NACRE_ASSIGN(const auto parts, metadata::split_path(path));
  NACRE_ASSIGN(const MemoryFolder* parent, folder(parts.folder));
  const FolderEntry* found = parent->find(parts.name);
  if (!found) return fail(ErrorCode::not_found, fmt::format("(memory)/{}: no such file", path));
  return *found;
}

Result<void> MemoryBacking::State::check_space(const MemoryFile& file, std::uint64_t size) const {
  const std::uint64_t most = std::min(capacity_bytes, quota_bytes);
  if (most == unlimited || size <= file.size()) return {};
  if (root->used_bytes() + (size - file.size()) <= most) return {};
  return fail(ErrorCode::no_space, "(memory): no space is left");
}

namespace {

class OpenMemoryFile final : public BackingFile {
 public:
  OpenMemoryFile(std::shared_ptr<MemoryBacking::State> state, std::shared_ptr<MemoryFile> file,
                 std::string path, bool writable)
      : state_(std::move(state)),
        file_(std::move(file)),
        path_(std::move(path)),
        writable_(writable) {
    ++state_->open_file_count;
  }
  ~OpenMemoryFile() override { --state_->open_file_count; }

  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) override {
    state_->announce(operation_read, path_);
    const std::lock_guard lock(state_->mutex);
    if (auto admission = state_->admit(operation_read, path_); admission.error) {
      return tl::unexpected(*admission.error);
    }
    if (!file_->is_readable(offset, out.size())) {
      return fail(ErrorCode::io, fmt::format("(memory)/{}: a bad block", path_));
    }
    return file_->read(offset, out);
  }

  Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) override {
    Bytes bytes;
    for (const ByteView piece : pieces)
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    state_->announce(change_write, path_);
    const std::lock_guard lock(state_->mutex);
    NACRE_TRY(check_writable());
    const auto admission = state_->admit(change_write, path_);
    if (admission.is_partial) bytes.resize(bytes.size() / 2);
    if (admission.takes_effect) {
      NACRE_TRY(state_->check_space(*file_, offset + bytes.size()));
      file_->write(offset, bytes);
    }
    return outcome(admission);
  }

  Result<void> sync() override {
    state_->announce(change_sync, path_);
    const std::lock_guard lock(state_->mutex);
    const auto admission = state_->admit(change_sync, path_);
    if (admission.error) {
      file_->fail_sync();
    } else {
      file_->sync();
    }
    return outcome(admission);
  }

  void start_writeback(std::uint64_t, std::uint64_t) override {}
  void advise(std::uint64_t, std::uint64_t, bool) override {}

  Result<std::uint64_t> size() override {
    const std::lock_guard lock(state_->mutex);
    if (auto admission = state_->admit(operation_look, path_); admission.error) {
      return tl::unexpected(*admission.error);
    }
    return file_->size();
  }

  Result<void> truncate(std::uint64_t size) override {
    state_->announce(change_truncate, path_);
    const std::lock_guard lock(state_->mutex);
    NACRE_TRY(check_writable());
    const auto admission = state_->admit(change_truncate, path_);
    if (admission.takes_effect) {
      NACRE_TRY(state_->check_space(*file_, size));
      file_->truncate(size);
    }
    return outcome(admission);
  }

  Result<void> allocate(std::uint64_t size) override {
    state_->announce(change_write, path_);
    const std::lock_guard lock(state_->mutex);
    NACRE_TRY(check_writable());
    const auto admission = state_->admit(change_write, path_);
    if (admission.takes_effect && size > file_->size()) {
      NACRE_TRY(state_->check_space(*file_, size));
      file_->truncate(size);
    }
    return outcome(admission);
  }

  bool is_nameless() override {
    const std::lock_guard lock(state_->mutex);
    return !state_->root->names(*file_);
  }

 private:
  Result<void> check_writable() const {
    if (writable_) return {};
    return fail(ErrorCode::invalid_argument,
                fmt::format("(memory)/{}: opened for reading only", path_));
  }
  static Result<void> outcome(const Admission& admission) {
    if (admission.error) return tl::unexpected(*admission.error);
    return {};
  }

  const std::shared_ptr<MemoryBacking::State> state_;
  const std::shared_ptr<MemoryFile> file_;
  const std::string path_;
  const bool writable_;
};

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
  state_->fail_at = unlimited;
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
  return std::make_unique<OpenMemoryFile>(state_, std::move(file), std::string(path),
                                          mode != OpenMode::read);
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
      state_->capacity_bytes == unlimited ? unlimited_total_bytes : state_->capacity_bytes;
  const std::uint64_t free = total > used ? total - used : 0;
  return metadata::BackingSpace{
      .total_bytes = total, .free_bytes = free, .available_bytes = free, .free_files = 1u << 20};
}

}  // namespace nacre::tests
