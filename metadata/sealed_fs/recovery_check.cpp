// SPDX-License-Identifier: Apache-2.0
// Checks that the files under db/ agree with each other before RocksDB sees them.
#include "metadata/sealed_fs/recovery_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "metadata/sealed_fs/file_header.h"
#include "metadata/sealed_fs/file_seal.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/log_chain.h"
#include "metadata/sealed_fs/sealed_file_system.h"

namespace nacre::metadata {
namespace {

constexpr std::string_view arriving_log_suffix = ".log.new";

Result<FramesContent> read_present(BackingDirectory& directory, const std::string& path,
                                   const KeyTree& keys) {
  auto content = read_frames(directory, path, keys);
  if (!content && content.error().code == ErrorCode::not_found) {
    return fail_in_file(ErrorCode::missing, path, "the file is missing");
  }
  return content;
}

// A sync that failed may have lost for ever what it was to save. A later sync that succeeds does
// not show that, and the lost bytes are still read from memory. So what no frame vouches for is
// written again, the same bytes to the same place.
Result<void> make_certain(BackingDirectory& directory, const std::string& path,
                          const FramesContent& content) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read_write));
  NACRE_TRY(file->write(content.walk.vouched_end, ByteView(content.unvouched)));
  return file->sync();
}

Result<FoundManifest> read_manifest(BackingDirectory& directory, std::string_view folder,
                                    const KeyTree& keys) {
  const std::string current = fmt::format("{}/CURRENT", folder);
  NACRE_ASSIGN(const FramesContent content, read_present(directory, current, keys));
  std::string_view name = as_text(content.plain);
  if (name.ends_with('\n')) name.remove_suffix(1);
  FoundManifest manifest;
  manifest.path = fmt::format("{}/{}", folder, name);
  const FileName parsed = parse_file_name(manifest.path);
  if (parsed.file_class != FileClass::manifest) {
    return fail_in_file(ErrorCode::corrupt, current, "it names no manifest");
  }
  manifest.number = parsed.number;
  NACRE_ASSIGN(manifest.content, read_present(directory, manifest.path, keys));
  manifest.frames = manifest.content.walk.frame_count;
  return manifest;
}

// Newest first.
Result<std::vector<std::uint64_t>> list_logs(BackingDirectory& directory, std::string_view folder) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  std::vector<std::uint64_t> numbers;
  for (const auto& name : names) {
    const FileName parsed = parse_file_name(name);
    if (parsed.file_class == FileClass::log) numbers.push_back(parsed.number);
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

// Returns what the logs say that nacre backup brings. Leaves out those that are torn, are of
// another volume, or hold rows.
Result<std::vector<ArrivingLog>> read_arriving_logs(BackingDirectory& directory,
                                                    std::string_view folder, const KeyTree& keys) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  std::vector<ArrivingLog> logs;
  for (const auto& name : names) {
    if (!is_arriving_log(name)) continue;
    auto file = directory.open(fmt::format("{}/{}", folder, name), OpenMode::read);
    // A file whose length no log can have was not brought by a backup.
    if (!file && file.error().code == ErrorCode::corrupt) continue;
    if (!file) return tl::unexpected(file.error());
    // The log is sealed under the name that it is to have.
    const std::string path =
        fmt::format("{}/{}.log", folder, name.substr(0, name.find(arriving_log_suffix)));
    auto frames = FrameBytes::of(std::move(*file), path);
    if (!frames && frames.error().code == ErrorCode::corrupt) continue;
    if (!frames) return tl::unexpected(frames.error());
    FrameBytes stored = std::move(*frames);
    const auto seal = FileSeal::open(keys, path, stored.view(0, file_header_size_bytes));
    Bytes rows;
    const auto walk = seal ? walk_frames(path, seal->header(), stored, &*seal, &rows)
                           : tl::unexpected(seal.error());
    if (!walk || !walk->witness || !rows.empty()) continue;
    logs.push_back({.name = {.log = parse_file_name(path).number, .salt = seal->header().salt},
                    .format = seal->header().format,
                    .witness = *walk->witness});
  }
  return logs;
}

// Returns the largest number in a name of digits and other characters, or the largest value of the
// type if a number does not fit.
std::uint64_t largest_number_in(std::string_view name) {
  constexpr std::string_view digits = "0123456789";
  std::uint64_t largest = 0;
  while (true) {
    const std::size_t from = name.find_first_of(digits);
    if (from == std::string_view::npos) return largest;
    name.remove_prefix(from);
    const std::size_t size = std::min(name.find_first_not_of(digits), name.size());
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + size, number);
    largest = std::max(
        largest, parsed.ec == std::errc() ? number : std::numeric_limits<std::uint64_t>::max());
    name.remove_prefix(size);
  }
}

// RocksDB believes the numbers in names, and continues from the largest. It assigns numbers one by
// one, and both the manifest and each new log take one. So a file whose number is far beyond those
// that are authenticated was planted. Near the largest number of all, RocksDB would end the
// process.
Result<void> check_numbers(BackingDirectory& directory, std::string_view folder,
                           std::uint64_t newest) {
  constexpr std::uint64_t numbers_ahead_max = 1u << 20;
  NACRE_ASSIGN(const auto names, directory.list(folder));
  for (const auto& name : names) {
    // An info log bears the time at which it was closed.
    if (is_arriving_log(name) || parse_file_name(name).file_class == FileClass::info_log) continue;
    const std::uint64_t number = largest_number_in(name);
    if (number > newest && number - newest > numbers_ahead_max) {
      return fail_in_file(ErrorCode::tampered, fmt::format("{}/{}", folder, name),
                          fmt::format("Nacre made no file of that number, the newest of this "
                                      "volume is {}; move the file away",
                                      newest));
    }
  }
  return {};
}

// RocksDB takes "20.log" for the log 20, which is "000020.log".
Result<void> refuse_other_forms(BackingDirectory& directory, std::string_view folder) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  for (const auto& name : names) {
    if (is_other_form_of_name(name)) {
      return fail_in_file(ErrorCode::tampered, fmt::format("{}/{}", folder, name),
                          "Nacre made no file of that name; move it away");
    }
  }
  return {};
}

}  // namespace

Result<RecoveryCheck> check_before_recovery(BackingDirectory& directory, std::string_view folder,
                                            const KeyTree& keys, bool make_durable) {
  NACRE_TRY(refuse_other_forms(directory, folder));
  NACRE_ASSIGN(const FoundManifest manifest, read_manifest(directory, folder, keys));
  NACRE_ASSIGN(const auto logs, list_logs(directory, folder));
  if (logs.empty()) {
    return fail_in_file(ErrorCode::missing, folder,
                        "the write-ahead log is missing, and with it the last changes");
  }
  RecoveryCheck found;
  found.ends[manifest.path] = end_of(manifest.content);
  LogChain chain(folder, manifest);
  std::uint64_t newest_log = 0;
  for (const std::uint64_t number : logs) {
    if (!chain.still_counts(number)) break;
    const std::string path = log_path(folder, number);
    NACRE_ASSIGN(const FramesContent content, read_present(directory, path, keys));
    if (content.walk.frame_count == 0) continue;  // it was just being made
    NACRE_TRY(chain.add(number, content));
    newest_log = std::max(newest_log, number);
    found.ends[path] = end_of(content);
    if (make_durable) NACRE_TRY(make_certain(directory, path, content));
  }
  NACRE_ASSIGN(const auto arriving, read_arriving_logs(directory, folder, keys));
  for (const ArrivingLog& log : arriving)
    NACRE_TRY(chain.check_arriving(log));
  if (make_durable) NACRE_TRY(make_certain(directory, manifest.path, manifest.content));
  NACRE_ASSIGN(found.witness, chain.finish(arriving));
  NACRE_TRY(check_numbers(directory, folder, std::max(manifest.number, newest_log)));
  return found;
}

bool is_arriving_log(std::string_view name) {
  return name.find(arriving_log_suffix) != std::string_view::npos;
}

Result<bool> has_arrived_log(BackingDirectory& directory, std::string_view folder,
                             const KeyTree& keys) {
  NACRE_ASSIGN(const auto logs, read_arriving_logs(directory, folder, keys));
  if (logs.empty()) return false;
  NACRE_ASSIGN(const FoundManifest manifest, read_manifest(directory, folder, keys));
  return std::any_of(logs.begin(), logs.end(),
                     [&](const ArrivingLog& log) { return stands_in(log, manifest); });
}

Result<void> SealedFileSystem::recover(std::string_view folder) {
  NACRE_ASSIGN(RecoveryCheck found,
               check_before_recovery(*directory_, folder, *keys_, !read_only_));
  LockGuard lock(log_mutex_);
  witness_ = found.witness;
  recovered_done_log_ = witness_.done_log;
  recovered_ends_ = std::move(found.ends);
  is_recovering_ = true;
  manifest_->set({.number = witness_.manifest,
                  .frames = witness_.manifest_frames,
                  .salt = witness_.manifest_salt,
                  .tag = witness_.manifest_tag});
  return {};
}

// RocksDB reads by name what recover() has checked. An attacker may have put another file there in
// between, or have added one.
Result<void> SealedFileSystem::check_unchanged(const std::string& path,
                                               const FramesContent& content) const {
  const FileClass file_class = parse_file_name(path).file_class;
  const bool is_chained = file_class == FileClass::log || file_class == FileClass::manifest;
  const std::uint64_t count = content.walk.frame_count;
  LockGuard lock(log_mutex_);
  const auto known = recovered_ends_.find(path);
  if (known == recovered_ends_.end()) {
    if (!is_recovering_ || !is_chained || count == 0) return {};
  } else {
    if (end_of(content) == known->second) return {};
    if (content.header.salt == known->second.salt && count < known->second.frame_count) {
      return fail_in_file(
          ErrorCode::corrupt, path,
          fmt::format("only {} frames can be read of {} that were there a moment ago", count,
                      known->second.frame_count));
    }
  }
  return fail_in_file(ErrorCode::tampered, path,
                      "the file is not the one that was there a moment ago: another one was put "
                      "there while the volume was being opened");
}

}  // namespace nacre::metadata
