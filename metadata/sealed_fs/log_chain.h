// SPDX-License-Identifier: Apache-2.0
// The chain of logs and manifest that each opening of the database verifies. docs/FORMAT.md, "Files
// under db/" and "Format 2", "The chain".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

struct FoundManifest {
  std::string path;
  std::uint64_t number = 0;
  std::uint64_t frames = 0;
  FramesContent content;
};

// A log that nacre backup brings, which holds no rows.
struct ArrivingLog {
  ManifestLink name;  // number and salt
  EpochFormat format = EpochFormat::one;
  LogWitness witness;
};

// Whether the log stands in for the one that the manifest asks for. In format 1 the log must know
// that manifest with no more frames than there are, or an older one. In format 2 it must vouch for
// that very manifest.
bool stands_in(const ArrivingLog& log, const FoundManifest& manifest);

// Follows the logs from the newest back to the last that still counts. Each log names the one
// before it. A log that is missing, was cut or was put back breaks the chain. In format 2 a log of
// another branch of history breaks it too.
class LogChain {
 public:
  // Both must outlive this object.
  LogChain(std::string_view folder, const FoundManifest& manifest)
      : folder_(folder), manifest_(manifest) {}

  bool still_counts(std::uint64_t number) const { return number > summary_.done_log; }
  // Adds the next older log that is there and has frames.
  Result<void> add(std::uint64_t number, const FramesContent& content);
  // Checks a log that a backup brought, and that lies next to the others.
  Result<void> check_arriving(const ArrivingLog& arriving) const;
  // Called after all of them. Returns what a new log says.
  Result<LogWitness> finish(const std::vector<ArrivingLog>& arriving);

 private:
  struct Member {
    ManifestLink name;
    EpochFormat format = EpochFormat::one;
    LogWitness witness;
  };

  tl::unexpected<Error> fail_missing() const;
  tl::unexpected<Error> fail_cut_manifest(std::uint64_t frames) const;
  tl::unexpected<Error> fail_unvouched() const;
  tl::unexpected<Error> fail_branch(const std::string& path) const;
  Result<void> check_link(const std::string& path, std::uint64_t number,
                          const FramesContent& content) const;
  Result<void> check_manifest(const std::string& log) const;
  bool vouches_for_manifest() const;

  std::string_view folder_;
  const FoundManifest& manifest_;
  std::vector<Member> members_;  // newest first
  LogWitness summary_;           // what a new log would say
};

// Logs as RocksDB names them.
std::string log_path(std::string_view folder, std::uint64_t number);

}  // namespace nacre::metadata
