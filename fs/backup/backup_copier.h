// SPDX-License-Identifier: Apache-2.0
// Copies single files of a volume at a limited rate, and verifies their checksums on the way.
#pragma once

#include <chrono>
#include <string>

#include "fs/backup/backup.h"

namespace nacre::fs {

// If a file is gone, the copier waits at most this long for the source to say that it no longer
// keeps the files.
inline constexpr std::chrono::milliseconds hold_patience{2000};

class BackupCopier {
 public:
  BackupCopier(metadata::BackingDirectory& source, metadata::BackingDirectory& target,
               const BackupOptions& options, const ProgressFunction& progress,
               BackupReport& report);

  void set_total(std::uint64_t bytes) { state_.total = bytes; }
  // Writes the file under the name unfinished, syncs it, and renames it to the name to. After a
  // crash the file to is absent, as it was before, or whole. Both names lie in the same folder, and
  // unfinished ends in the suffix of unfinished files.
  Result<> copy(const BackupFile& file, const std::string& unfinished, const std::string& to);
  // The same for content that the caller holds in memory.
  Result<> write(ByteView content, const std::string& unfinished, const std::string& to);
  // Calls BackupOptions::check_hold, if there is one.
  Result<> check_hold(std::chrono::milliseconds patience) const;

 private:
  Result<> copy_whole(const BackupFile& file, const std::string& unfinished, const std::string& to);
  Result<> check(const BackupFile& file, metadata::BackingFile& from);
  Result<> copy_bytes(const BackupFile& file, metadata::BackingFile& from,
                      metadata::BackingFile& to);
  void pace();

  metadata::BackingDirectory& source_;
  metadata::BackingDirectory& target_;
  const BackupOptions options_;
  const ProgressFunction& progress_;
  BackupReport& report_;
  Progress state_{.stage = "backup"};
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Bytes buffer_;
};

}  // namespace nacre::fs
