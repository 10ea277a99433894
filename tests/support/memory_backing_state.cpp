// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory_backing_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "metadata/backing/path.h"

namespace nacre::tests {

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
    // The change was under way when the medium failed. It takes effect, but it is not durable.
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
    const bool is_read = operation == operation_read;
    if (is_read && (failure.partial || failure.flip)) {
      return {.error = {}, .is_partial = failure.partial, .is_flipped = failure.flip};
    }
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
  if (most == unlimited_bytes || size <= file.size()) return {};
  if (root->used_bytes() + (size - file.size()) <= most) return {};
  return fail(ErrorCode::no_space, "(memory): no space is left");
}

}  // namespace nacre::tests
