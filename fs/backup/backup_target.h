// SPDX-License-Identifier: Apache-2.0
// Decides what a target folder holds and whether a backup may be written there; and reads and
// writes its file "backup", which tells of which volume it is a backup and with which db/CURRENT.
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
  // The headers that db/CURRENT may have: that of the state in the target, and, while a backup
  // replaces this state, that of the next. A mount of the target for writing makes another CURRENT,
  // so a header that is not listed tells that the target was used as a volume of its own.
  std::vector<Bytes> current_headers;
  std::string finished;  // RFC 3339; empty while a backup is under way
};
Result<> save_backup_mark(metadata::BackingDirectory& target, const BackupMark& mark);

struct BackupTarget {
  // Whether the target is no volume yet: it is empty, or its first backup was interrupted. If not,
  // it holds a state that must stay until the new one is whole.
  bool is_first = true;
  BackupMark mark;
};

// Changes nothing. Errors, each with a message for the user: not_empty if the target holds other
// files; exists if it holds another volume, a volume that is no backup, a newer state than the
// source, or a backup that was used as a volume since; corrupt if its mark is damaged; those of
// reading.
Result<BackupTarget> check_backup_target(metadata::BackingDirectory& source,
                                         metadata::BackingDirectory& target);

// The first bytes of a file of db/. They hold the salt that no other file has.
Bytes header_of(ByteView content);

}  // namespace nacre::fs
