// SPDX-License-Identifier: Apache-2.0
// Copies single files of a volume, looks whether they are whole on the way, and keeps to a rate.
#pragma once

#include <chrono>
#include <string>

#include "fs/backup/backup.h"

namespace nacre::fs {

// How long a file that is gone waits for the word that files are no longer held.
inline constexpr std::chrono::milliseconds hold_patience{2000};

class BackupCopier {
 public:
  BackupCopier(metadata::BackingDirectory& source, metadata::BackingDirectory& target,
               const BackupOptions& options, const ProgressFunction& progress,
               BackupReport& report);

  void set_total(std::uint64_t bytes) { state_.total = bytes; }
  // Writes the file under another name, syncs it, and renames it: to is absent, as it was, or
  // whole. to lies in the file's folder, unfinished ends in the suffix of what is being written.
  Result<> copy(const BackupFile& file, const std::string& unfinished, const std::string& to);
  // The same with bytes that are there already.
  Result<> write(ByteView content, const std::string& unfinished, const std::string& to);
  // What the options say of the files: are they still held?
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
