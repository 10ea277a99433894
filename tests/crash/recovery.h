// SPDX-License-Identifier: Apache-2.0
// Reads what a volume holds after a crash, and judges whether it may hold that.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "fs/mount/mounted.h"
#include "tests/crash/history.h"
#include "tests/support/memory_backing.h"

namespace nacre::tests {

// One name with what it names, as a line of RecoveredTree::names.
struct EntryText {
  std::string path;
  fs::InodeNumber inode;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t link_count = 0;
  std::uint64_t entry_count = 0;  // of a directory
  std::string target;             // of a symlink
  std::map<std::string, std::string> xattrs;
};
std::string entry_text(const EntryText& entry);

// Reads all that the volume shows. A failed read fails the test.
RecoveredTree read_tree(fs::Volume& volume);

// Expects the checks of fsck.nacre to find no error in an unmounted volume. deep: they read every
// byte.
void expect_clean(const std::shared_ptr<MemoryBacking>& backing, std::uint32_t chunk_size_bytes,
                  bool deep);

// Expects the volume on the medium to have a sound structure, to mount, and to show what the
// promises allow. With and_goes_on it must also take changes, and pass every check after it was
// closed.
void expect_recovery(const std::shared_ptr<MemoryBacking>& backing,
                     const fs::VolumeOptions& options, const History& history,
                     const Promises& promises, bool and_goes_on = true);

}  // namespace nacre::tests
