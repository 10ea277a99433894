// SPDX-License-Identifier: Apache-2.0
// What must agree among the files under db/ before RocksDB sees them.
#include "metadata/sealed_fs/recovery_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "metadata/sealed_fs/file_header.h"
#include "metadata/sealed_fs/file_seal.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {
namespace {

constexpr std::string_view arriving_log_suffix = ".log.new";

// Logs as RocksDB names them.
std::string log_path(std::string_view folder, std::uint64_t number) {
  return fmt::format("{}/{:06}.log", folder, number);
}

Result<FramesContent> read_present(BackingDirectory& directory, const std::string& path,
                                   const KeyTree& keys) {
  auto content = read_frames(directory, path, keys);
  if (!content && content.error().code == ErrorCode::not_found) {
    return fail_in_file(ErrorCode::missing, path, "the file is missing");
  }
  return content;
}

// A sync that failed may have cost what it was to save, for ever, and one that succeeds later says
// nothing of that, though what was lost is still read from memory. So what no frame vouches for is
// written again, the same bytes to the same place.
Result<void> make_certain(BackingDirectory& directory, const std::string& path,
                          const FramesContent& content) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read_write));
  NACRE_TRY(file->write(content.walk.vouched_end, ByteView(content.unvouched)));
  return file->sync();
}

struct FoundManifest {
  std::string path;
  std::uint64_t number = 0;
  std::uint64_t frames = 0;
  FramesContent content;
};

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

// What the logs say that nacre backup brings, as far as they are whole, this volume's, and hold no
// rows.
Result<std::vector<LogWitness>> read_arriving_logs(BackingDirectory& directory,
                                                   std::string_view folder, const KeyTree& keys) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  std::vector<LogWitness> witnesses;
  for (const auto& name : names) {
    if (!is_arriving_log(name)) continue;
    NACRE_ASSIGN(auto file, directory.open(fmt::format("{}/{}", folder, name), OpenMode::read));
    // Sealed under the name that it is to have.
    const std::string path =
        fmt::format("{}/{}.log", folder, name.substr(0, name.find(arriving_log_suffix)));
    NACRE_ASSIGN(FrameBytes stored, FrameBytes::of(std::move(file), path));
    const auto seal = FileSeal::open(keys, path, stored.view(0, file_header_size_bytes));
    Bytes rows;
    const auto walk = seal ? walk_frames(path, seal->header(), stored, &*seal, &rows)
                           : tl::unexpected(seal.error());
    if (walk && walk->witness && rows.empty()) witnesses.push_back(*walk->witness);
  }
  return witnesses;
}

// Follows the logs from the newest back to the last that still counts. Each names the one before
// it: one that is missing, was cut or was put back breaks the chain.
class LogChain {
 public:
  LogChain(std::string_view folder, const FoundManifest& manifest)
      : folder_(folder), manifest_(manifest) {}

  bool still_counts(std::uint64_t number) const { return number > summary_.done_log; }

  // The next older log that is there and has frames.
  Result<void> add(std::uint64_t number, const FrameWalk& walk) {
    const std::string path = log_path(folder_, number);
    if (!walk.witness) {
      return fail_in_file(ErrorCode::corrupt, path, "the log does not say what came before it");
    }
    if (is_empty_) {
      newest_ = *walk.witness;
      summary_.previous_log = number;
      summary_.previous_frames = walk.frame_count;
    } else {
      NACRE_TRY(check_link(path, number, walk.frame_count));
    }
    is_empty_ = false;
    oldest_ = *walk.witness;
    summary_.done_log = std::max(summary_.done_log, oldest_.done_log);
    return check_manifest(path);
  }

  // Beside the logs lies one that a backup brought for a manifest of more frames. Then the backup's
  // earlier state counts still, and its manifest has the frames that its own log says; any other
  // number is left of the new one, whose rows would be there in part.
  Result<void> check_arriving(const LogWitness& arriving) const {
    if (is_empty_ || arriving.manifest != manifest_.number ||
        arriving.manifest_frames <= manifest_.frames) {
      return {};
    }
    if (newest_.manifest == manifest_.number && newest_.manifest_frames == manifest_.frames) {
      return {};
    }
    return fail_cut_manifest(arriving.manifest_frames);
  }

  Result<LogWitness> finish() {
    if (still_counts(oldest_.previous_log)) return fail_missing();
    summary_.manifest = manifest_.number;
    summary_.manifest_frames = manifest_.frames;
    return summary_;
  }

 private:
  tl::unexpected<Error> fail_missing() const {
    return fail_in_file(ErrorCode::missing, log_path(folder_, oldest_.previous_log),
                        "the file is missing, and with it changes that were safe");
  }

  Result<void> check_link(const std::string& path, std::uint64_t number,
                          std::uint64_t frame_count) const {
    if (number < oldest_.previous_log) return fail_missing();
    if (number > oldest_.previous_log) {
      return fail_in_file(ErrorCode::rolled_back, path,
                          "the log was put back: no newer log knows of it");
    }
    if (frame_count < oldest_.previous_frames) {
      return fail_in_file(ErrorCode::corrupt, path,
                          fmt::format("the log was cut: {} of {} frames are left", frame_count,
                                      oldest_.previous_frames));
    }
    return {};
  }

  Result<void> check_manifest(const std::string& log) const {
    if (oldest_.manifest > manifest_.number) {
      return fail_in_file(ErrorCode::rolled_back, fmt::format("{}/CURRENT", folder_),
                          fmt::format("it names manifest {}, but {} knows of manifest {}",
                                      manifest_.number, log, oldest_.manifest));
    }
    if (oldest_.manifest == manifest_.number && oldest_.manifest_frames > manifest_.frames) {
      return fail_cut_manifest(oldest_.manifest_frames);
    }
    return {};
  }
  tl::unexpected<Error> fail_cut_manifest(std::uint64_t frames) const {
    return fail_in_file(
        ErrorCode::corrupt, manifest_.path,
        fmt::format("the manifest was cut: {} of {} frames are left", manifest_.frames, frames));
  }

  std::string_view folder_;
  const FoundManifest& manifest_;
  bool is_empty_ = true;
  LogWitness newest_;   // of the newest log with frames
  LogWitness oldest_;   // of the oldest log so far
  LogWitness summary_;  // what a new log would say
};

// The largest number that a name of digits and other characters holds; the largest of all where it
// does not fit.
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

// RocksDB believes the numbers in names, and counts on from the largest. They are given out one by
// one, and both the manifest and each new log take one: what lies far beyond those that are
// authenticated is nobody's, and near the largest number of all RocksDB ends the process.
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

}  // namespace

Result<RecoveryCheck> check_before_recovery(BackingDirectory& directory, std::string_view folder,
                                            const KeyTree& keys, bool make_durable) {
  NACRE_ASSIGN(const FoundManifest manifest, read_manifest(directory, folder, keys));
  NACRE_ASSIGN(const auto logs, list_logs(directory, folder));
  if (logs.empty()) {
    return fail_in_file(ErrorCode::missing, folder,
                        "the write-ahead log is missing, and with it the last changes");
  }
  RecoveryCheck found;
  found.frame_counts[manifest.path] = manifest.frames;
  LogChain chain(folder, manifest);
  std::uint64_t newest_log = 0;
  for (const std::uint64_t number : logs) {
    if (!chain.still_counts(number)) break;
    const std::string path = log_path(folder, number);
    NACRE_ASSIGN(const FramesContent content, read_present(directory, path, keys));
    if (content.walk.frame_count == 0) continue;  // it was just being made
    NACRE_TRY(chain.add(number, content.walk));
    newest_log = std::max(newest_log, number);
    found.frame_counts[path] = content.walk.frame_count;
    if (make_durable) NACRE_TRY(make_certain(directory, path, content));
  }
  NACRE_ASSIGN(const auto arriving, read_arriving_logs(directory, folder, keys));
  for (const LogWitness& witness : arriving)
    NACRE_TRY(chain.check_arriving(witness));
  if (make_durable) NACRE_TRY(make_certain(directory, manifest.path, manifest.content));
  NACRE_ASSIGN(found.witness, chain.finish());
  NACRE_TRY(check_numbers(directory, folder, std::max(manifest.number, newest_log)));
  return found;
}

bool is_arriving_log(std::string_view name) {
  return name.find(arriving_log_suffix) != std::string_view::npos;
}

Result<bool> has_arrived_log(BackingDirectory& directory, std::string_view folder,
                             const KeyTree& keys) {
  NACRE_ASSIGN(const auto witnesses, read_arriving_logs(directory, folder, keys));
  if (witnesses.empty()) return false;
  NACRE_ASSIGN(const FoundManifest manifest, read_manifest(directory, folder, keys));
  return std::any_of(witnesses.begin(), witnesses.end(), [&](const LogWitness& said) {
    return manifest.number > said.manifest ||
           (manifest.number == said.manifest && manifest.frames >= said.manifest_frames);
  });
}

}  // namespace nacre::metadata
