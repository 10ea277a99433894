// SPDX-License-Identifier: Apache-2.0
// The state that the parts of a volume share: its inodes, what a commit takes of them, and the
// parts that run beneath.
//
// Changes of attributes happen in memory, until a commit stages them (staging.h). Names and
// extended attributes go to the open group at once. A group always holds an operation as a whole: a
// thread that changes rows, or an inode together with rows or other inodes, holds the operation
// lock.
//
// Lock order. Locks are taken from top to bottom:
//   committer's move lock      rename and link only
//   FileData's flush lock      FileData takes this lock and the operation lock itself, so callers
//   operation lock (shared)    of its methods hold neither
//   namespace lock             shared to read names, exclusive to change them
//   FileData's mutex           its queries (data_bytes(), is_dirty()) take no other lock
//   an inode's lock            one at a time. FileData takes it when its durable state changes, so
//                              only size() and durable_…() are called under it
//   leaves                     inode table, orphan queue, Staging, the database
// None of these locks is held while waiting for a commit, a flush, the dirty budget or the kernel.
// A function declares InodeRefs before its locks, so that they are released after them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "fs/cache/file_cache.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"
#include "fs/volume/admission.h"
#include "fs/volume/inode_table.h"
#include "fs/volume/kernel_cache.h"
#include "fs/volume/name_table.h"
#include "fs/volume/staging.h"
#include "fs/volume/volume_rules.h"
#include "fs/volume/xattr_table.h"

namespace nacre::fs {

// The parts that run beneath a volume's calls, and outlive it.
struct VolumeBase {
  metadata::BackingDirectory& directory;
  metadata::Database& database;
  Ballast& ballast;
  const KernelCacheLink& kernel_cache;
  Committer& committer;
  FileCache& cache;
  Admission& admission;
};

struct VolumeCore {
  // retire is that of InodeTable.
  VolumeCore(const VolumeBase& beneath, const NameHashKey& name_hash_key,
             const Staging::Counters& counters, const VolumeRules& rules,
             std::size_t loaded_inodes_max, std::function<void(InodeRef)> retire)
      : base(beneath),
        rules(rules),
        names(base.database, name_hash_key),
        xattrs(base.database),
        inodes(base.database, std::move(retire), loaded_inodes_max),
        staging(base.database, inodes, base.committer, counters) {}

  const VolumeBase base;
  const VolumeRules rules;
  NameTable names;
  XattrTable xattrs;
  InodeTable inodes;
  Staging staging;
};

// A part of a volume. It has the shared state under the names that all parts use. Thread-safe.
class VolumePart {
 public:
  std::shared_ptr<FileData> data_of(Inode& inode);  // of a regular file
  // The last known path of the inode, or "(inode 7)" if none is known.
  std::string path_of(InodeNumber inode);
  // The inode's name in errors and messages: its path, or its number if files are not named.
  std::string shown_name(InodeNumber inode);

 protected:
  explicit VolumePart(VolumeCore& core)
      : directory_(core.base.directory),
        database_(core.base.database),
        ballast_(core.base.ballast),
        kernel_cache_(core.base.kernel_cache),
        committer_(core.base.committer),
        cache_(core.base.cache),
        admission_(core.base.admission),
        rules_(core.rules),
        names_(core.names),
        xattrs_(core.xattrs),
        inodes_(core.inodes),
        staging_(core.staging) {}

  Result<> check_writable() const { return admission_.check_writable(); }
  Result<> check_may_grow() { return admission_.check_may_grow(); }
  void mark_dirty(Inode& inode, Inode::Locked& locked) { staging_.mark_dirty(inode, locked); }
  // Puts the file's path in front of errors about what is stored.
  Error with_path(Error error, InodeNumber inode);

  metadata::BackingDirectory& directory_;
  metadata::Database& database_;
  Ballast& ballast_;
  const KernelCacheLink& kernel_cache_;
  Committer& committer_;
  FileCache& cache_;
  Admission& admission_;
  const VolumeRules& rules_;
  NameTable& names_;
  XattrTable& xattrs_;
  InodeTable& inodes_;
  Staging& staging_;
};

}  // namespace nacre::fs
