// SPDX-License-Identifier: Apache-2.0
// What a backup of a mounted volume copies: files, and how much of each, that together are the
// volume as of one commit, and what keeps them in place meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

struct BackupFile {
  std::string path;        // within the volume directory
  std::uint64_t size = 0;  // bytes from the beginning: they never change
  bool operator==(const BackupFile&) const = default;
};

// Keeps what a backup copies in place while it lives. On a full disk that may end earlier: files
// of the snapshot are removed from then on, and whoever copies them must be told.
class BackupHold {
 public:
  virtual ~BackupHold() = default;
  virtual bool is_given_up() const = 0;
};

// Segments and files of db/; neither superblock nor keyring nor db/CURRENT.
struct BackupSnapshot {
  std::vector<BackupFile> files;
  Bytes current;  // what db/CURRENT holds
  // It must go before the volume does. None where nobody removes anything.
  std::shared_ptr<const BackupHold> hold;
};

// The part of it that the segment store gives.
struct SegmentHold {
  std::vector<BackupFile> files;
  std::shared_ptr<const void> hold;
};

// How many backups of one volume may run at a time.
inline constexpr unsigned backup_count_max = 4;

}  // namespace nacre::fs
