// SPDX-License-Identifier: Apache-2.0
// What a backup of a mounted volume copies: files, and how much of each, which together are the
// volume as of one commit. A hold keeps them in place during the copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

struct BackupFile {
  std::string path;        // within the volume directory
  std::uint64_t size = 0;  // from the beginning; these bytes never change
  bool operator==(const BackupFile&) const = default;
};

// While it exists, the files that a backup copies stay in place. On a full disk they may be given
// up earlier (is_given_up()). From then on files of the snapshot are removed, so the backup must
// end.
class BackupHold {
 public:
  virtual ~BackupHold() = default;
  virtual bool is_given_up() const = 0;
};

// Segments and files of db/. Superblock, keyring and db/CURRENT are not among them.
struct BackupSnapshot {
  std::vector<BackupFile> files;
  Bytes current;  // what db/CURRENT holds
  // Must be destroyed before the volume. Null if nothing removes files of the volume, as when it is
  // not mounted.
  std::shared_ptr<const BackupHold> hold;
};

// The segment store's part of a BackupSnapshot.
struct SegmentHold {
  std::vector<BackupFile> files;
  std::shared_ptr<const void> hold;
};

// The maximum number of backups of one volume at a time.
inline constexpr unsigned backup_count_max = 4;

}  // namespace nacre::fs
