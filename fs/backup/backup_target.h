// SPDX-License-Identifier: Apache-2.0
// What a target folder is, and whether a backup may go there; and the file "backup" in it, which
// says so: of which volume it is one, and that nobody has used it as a volume since.
#pragma once

#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"

namespace nacre::fs {

inline constexpr std::string_view backup_file = "backup";

// The file "backup": one JSON object.
struct BackupMark {
  engine::VolumeId volume_id = {};
  // The headers that db/CURRENT may have: that of the state which is there, and while one replaces
  // it, that of the next. Whoever mounts the target for writing makes another CURRENT.
  std::vector<Bytes> current_headers;
  std::string finished;  // RFC 3339; empty while a backup is under way
};
Result<> save_backup_mark(metadata::BackingDirectory& target, const BackupMark& mark);

struct BackupTarget {
  // Not a volume yet: empty, or the first backup was interrupted. Else it holds a state that must
  // stay until another one is whole.
  bool is_first = true;
  BackupMark mark;
};

// Looks, and changes nothing. Refuses with words for the user: not_empty (other files), exists
// (another volume, no backup, newer than the source, or used by itself since); corrupt (its mark);
// and what reading gives.
Result<BackupTarget> check_backup_target(metadata::BackingDirectory& source,
                                         metadata::BackingDirectory& target);

// The first bytes of a file, which hold the salt that makes it unlike any other.
Bytes header_of(ByteView content);

}  // namespace nacre::fs
