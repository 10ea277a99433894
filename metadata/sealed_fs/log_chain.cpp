// SPDX-License-Identifier: Apache-2.0
#include "metadata/sealed_fs/log_chain.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre::metadata {
namespace {

EpochFormat format_of(const FoundManifest& manifest) {
  return manifest.content.header.format;
}

// Whether the witness of a log of format 2 names this very file, and the frame that it counted
// last.
bool names_salt_of(const LogWitness& witness, const FoundManifest& manifest) {
  return witness.manifest_salt == manifest.content.header.salt;
}
bool names_frame_of(const LogWitness& witness, const FoundManifest& manifest) {
  const auto& tags = manifest.content.walk.tags;
  const std::uint64_t count = witness.manifest_frames;
  return count > 0 && count <= tags.size() && tags[count - 1] == witness.manifest_tag;
}

// The number of frames that a witness counted, as the manifest has them now. If the manifest was
// sealed anew from format 1, it has a link before them.
std::uint64_t counted_frames(const LogWitness& witness, EpochFormat format,
                             const FoundManifest& manifest) {
  const bool got_link = format == EpochFormat::one && format_of(manifest) != EpochFormat::one;
  return witness.manifest_frames + (got_link ? 1 : 0);
}

}  // namespace

std::string log_path(std::string_view folder, std::uint64_t number) {
  return fmt::format("{}/{:06}.log", folder, number);
}

bool stands_in(const ArrivingLog& log, const FoundManifest& manifest) {
  const LogWitness& said = log.witness;
  if (log.format == EpochFormat::one && format_of(manifest) == EpochFormat::one) {
    return manifest.number > said.manifest ||
           (manifest.number == said.manifest && manifest.frames >= said.manifest_frames);
  }
  if (log.format != EpochFormat::one && names_salt_of(said, manifest)) {
    return names_frame_of(said, manifest);
  }
  return manifest.number >= said.manifest && manifest.content.walk.link == log.name;
}

Result<void> LogChain::add(std::uint64_t number, const FramesContent& content) {
  const std::string path = log_path(folder_, number);
  if (!content.walk.witness) {
    return fail_in_file(ErrorCode::corrupt, path, "the log does not say what came before it");
  }
  if (members_.empty()) {
    summary_.previous_log = number;
    summary_.previous_frames = content.walk.frame_count;
    summary_.previous_salt = content.header.salt;
    summary_.previous_tag = content.walk.last_tag;
  } else {
    NACRE_TRY(check_link(path, number, content));
  }
  members_.push_back({.name = {.log = number, .salt = content.header.salt},
                      .format = content.header.format,
                      .witness = *content.walk.witness});
  summary_.done_log = std::max(summary_.done_log, content.walk.witness->done_log);
  return check_manifest(path);
}

tl::unexpected<Error> LogChain::fail_missing() const {
  return fail_in_file(ErrorCode::missing, log_path(folder_, members_.back().witness.previous_log),
                      "the file is missing, and with it changes that were safe");
}

tl::unexpected<Error> LogChain::fail_branch(const std::string& path) const {
  return fail_in_file(ErrorCode::tampered, path,
                      "the file is of another branch of the volume's history (a backup or a copy "
                      "that was written to), and was put in the place of this one's");
}

tl::unexpected<Error> LogChain::fail_unvouched() const {
  const auto& link = manifest_.content.walk.link;
  const bool is_there = std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
    return !link || member.name.log == link->log;
  });
  if (is_there || !still_counts(link->log)) return fail_branch(manifest_.path);
  return fail_in_file(ErrorCode::missing, log_path(folder_, link->log),
                      "the file is missing or empty, and with it changes that were safe");
}

tl::unexpected<Error> LogChain::fail_cut_manifest(std::uint64_t frames) const {
  return fail_in_file(
      ErrorCode::corrupt, manifest_.path,
      fmt::format("the manifest was cut: {} of {} frames are left", manifest_.frames, frames));
}

Result<void> LogChain::check_link(const std::string& path, std::uint64_t number,
                                  const FramesContent& content) const {
  const Member& next = members_.back();
  const LogWitness& said = next.witness;
  if (number < said.previous_log) return fail_missing();
  if (number > said.previous_log) {
    return fail_in_file(ErrorCode::rolled_back, path,
                        "the log was put back: no newer log knows of it");
  }
  const std::uint64_t count = content.walk.frame_count;
  if (next.format != EpochFormat::one && content.header.salt != said.previous_salt) {
    return fail_branch(path);
  }
  if (count < said.previous_frames) {
    return fail_in_file(
        ErrorCode::corrupt, path,
        fmt::format("the log was cut: {} of {} frames are left", count, said.previous_frames));
  }
  if (next.format == EpochFormat::one) return {};
  if (count > said.previous_frames || content.walk.last_tag != said.previous_tag) {
    return fail_branch(path);
  }
  return {};
}

Result<void> LogChain::check_manifest(const std::string& log) const {
  const Member& member = members_.back();
  const LogWitness& said = member.witness;
  if (said.manifest > manifest_.number) {
    return fail_in_file(ErrorCode::rolled_back, fmt::format("{}/CURRENT", folder_),
                        fmt::format("it names manifest {}, but {} knows of manifest {}",
                                    manifest_.number, log, said.manifest));
  }
  const std::uint64_t counted = counted_frames(said, member.format, manifest_);
  if (said.manifest == manifest_.number && counted > manifest_.frames) {
    return fail_cut_manifest(counted);
  }
  return {};
}

Result<void> LogChain::check_arriving(const ArrivingLog& arriving) const {
  if (members_.empty() || arriving.witness.manifest != manifest_.number ||
      arriving.witness.manifest_frames <= manifest_.frames) {
    return {};
  }
  // The backup's earlier state still counts, and its manifest must have as many frames as its own
  // log says. Any other number means the new manifest, cut short: its rows would be there in
  // part.
  if (arriving.format != EpochFormat::one && !names_salt_of(arriving.witness, manifest_)) return {};
  const LogWitness& newest = members_.front().witness;
  if (newest.manifest == manifest_.number && newest.manifest_frames == manifest_.frames) return {};
  return fail_cut_manifest(arriving.witness.manifest_frames);
}

// docs/FORMAT.md, "The chain", 1 to 3.
bool LogChain::vouches_for_manifest() const {
  // Each log begins with a witness. Only in format 1 may all logs be empty.
  if (members_.empty()) return format_of(manifest_) == EpochFormat::one;
  const Member& newest = members_.front();
  const LogWitness& said = newest.witness;
  const auto& link = manifest_.content.walk.link;
  if (newest.format != EpochFormat::one && names_salt_of(said, manifest_)) {
    return names_frame_of(said, manifest_);
  }
  if (!link) return newest.format == EpochFormat::one;  // both are of format 1
  if (said.manifest == manifest_.number) return *link == newest.name;
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& member) { return member.name == *link; });
}

Result<LogWitness> LogChain::finish(const std::vector<ArrivingLog>& arriving) {
  if (!members_.empty() && still_counts(members_.back().witness.previous_log)) {
    return fail_missing();
  }
  if (!vouches_for_manifest()) {
    const std::uint64_t newest = members_.empty() ? 0 : members_.front().name.log;
    const auto stand_in =
        std::find_if(arriving.begin(), arriving.end(), [&](const ArrivingLog& log) {
          return stands_in(log, manifest_) && newest <= log.witness.done_log;
        });
    if (stand_in == arriving.end()) return fail_unvouched();
    summary_.done_log = std::max(summary_.done_log, stand_in->witness.done_log);
  }
  summary_.manifest = manifest_.number;
  summary_.manifest_frames = manifest_.frames;
  summary_.manifest_salt = manifest_.content.header.salt;
  summary_.manifest_tag = manifest_.content.walk.last_tag;
  return summary_;
}

}  // namespace nacre::metadata
