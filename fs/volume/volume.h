// SPDX-License-Identifier: Apache-2.0
// The calls of a file system: POSIX files and directories by inode number, in terms of tables and
// file data. fs/fuse translates the kernel's messages into these calls and nothing else; tests call
// them directly. What runs beneath them is put together in fs/mount. Permission bits are the
// kernel's business (default_permissions); what only the volume knows (immutable and append-only
// flags, read-only state, limits) is checked here.
//
// Thread-safe. Every entry that lookup(), make_*(), link() or read_directory(with attributes) hands
// out counts as one lookup of its inode until forget() takes it back; an inode whose last name is
// gone lives on until its lookups are forgotten, and at the latest until the next mount.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/cache/file_data.h"
#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

using metadata::Timestamp;

// Who asks, for ownership of new files.
struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t umask = 0;  // applied to new files unless their directory has a default ACL
};

struct Attributes {
  InodeNumber inode;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t link_count = 0;
  std::uint32_t flags = 0;  // metadata::inode_flag_*
  std::uint64_t rdev = 0;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  // of 512 bytes
  bool has_holes = false;    // of a regular file, as far as the volume knows
  Timestamp accessed, modified, changed, born;
};

// Whether a change takes the bits that lend a program's caller somebody else's rights.
enum class ClearSetId : std::uint8_t {
  none,
  those_that_lend,  // set-user-id, and set-group-id where the group may execute
  all,              // also a set-group-id bit without group execution
};

struct AttributeChange {
  std::optional<std::uint32_t> mode;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;
  std::optional<Timestamp> accessed;
  std::optional<Timestamp> modified;
  std::optional<Timestamp> changed;
  // Whose times these are. Append-only files take those that a write or touch(1) brings along, not
  // those that somebody chose. The kernel's own do not say that they are.
  enum class Times : std::uint8_t { brought_along, maybe_chosen, chosen };
  Times times = Times::brought_along;
  ClearSetId clear_set_id = ClearSetId::none;  // FATTR_KILL_SUIDGID
};

struct DirectoryEntry {
  std::string_view name;
  InodeNumber inode;
  std::uint8_t type = 0;     // DT_*
  std::uint64_t cookie = 0;  // where to go on after this entry
  // Only when asked for, and not for "." and "..", nor when the inode is damaged: then the entry is
  // listed all the same, and does not count as a lookup.
  const Attributes* attributes = nullptr;
};

enum class RenameMode : std::uint8_t { replace, no_replace, exchange };
enum class XattrMode : std::uint8_t { set, create, replace };
struct WriteFlags {
  ClearSetId clear_set_id = ClearSetId::none;  // FUSE_WRITE_KILL_SUIDGID
  // The writer was told long ago that the bytes are taken (FUSE_WRITE_CACHE): a full disk is no
  // reason to drop them. They wait in memory until there is room, within the dirty budget, and
  // whoever syncs hears of it. They are refused once the ballast was given up.
  bool is_taken = false;
};

enum class AllocateMode : std::uint8_t { allocate, keep_size, punch_hole, zero, zero_keep_size };

struct VolumeSpace {
  std::uint64_t total_bytes = 0, free_bytes = 0, available_bytes = 0;
  std::uint64_t inode_count = 0, free_inodes = 0;  // the first: in use and free together
};

class Volume {
 public:
  virtual ~Volume() = default;

  // Names. A name is 1 to 255 bytes without '/' and NUL, and neither "." nor ".." (but lookup takes
  // both, for NFS).
  virtual Result<Attributes> lookup(InodeNumber parent, std::string_view name) = 0;
  // For NFS: an inode by its number; stale when it is gone.
  virtual Result<Attributes> lookup_inode(InodeNumber inode) = 0;
  // Whether lookups of it are left.
  virtual bool forget(InodeNumber inode, std::uint64_t lookups) = 0;
  virtual Result<Attributes> make_node(InodeNumber parent, std::string_view name,
                                       const Caller& caller, std::uint32_t mode,
                                       std::uint64_t rdev) = 0;  // regular files too
  virtual Result<Attributes> make_directory(InodeNumber parent, std::string_view name,
                                            const Caller& caller, std::uint32_t mode) = 0;
  virtual Result<Attributes> make_symlink(InodeNumber parent, std::string_view name,
                                          const Caller& caller, std::string_view target) = 0;
  // A regular file without a name (O_TMPFILE); link() can give it one.
  virtual Result<Attributes> make_unnamed(InodeNumber parent, const Caller& caller,
                                          std::uint32_t mode) = 0;
  virtual Result<Attributes> link(InodeNumber inode, InodeNumber parent, std::string_view name) = 0;
  virtual Result<> unlink(InodeNumber parent, std::string_view name) = 0;
  virtual Result<> remove_directory(InodeNumber parent, std::string_view name) = 0;
  virtual Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                          std::string_view new_name, RenameMode mode) = 0;
  // The same, not with exchange; under the old name it leaves a whiteout of the caller's, as
  // overlayfs wants it: a character device 0/0 that nobody may open.
  virtual Result<> rename_over_whiteout(InodeNumber parent, std::string_view name,
                                        InodeNumber new_parent, std::string_view new_name,
                                        RenameMode mode, const Caller& caller) = 0;
  virtual Result<std::string> read_symlink(InodeNumber inode) = 0;
  // Calls take for entries after cookie (0: from the start) until it returns false; the entry for
  // which it did is not counted as looked up. Cookies stay right while entries come and go. take
  // must not call the volume.
  virtual Result<> read_directory(InodeNumber inode, std::uint64_t cookie, bool with_attributes,
                                  const std::function<bool(const DirectoryEntry&)>& take) = 0;
  // Reads on for those who list large directories: for the thread that has just answered one.
  virtual void go_on_listing() noexcept = 0;

  // Attributes.
  virtual Result<Attributes> attributes(InodeNumber inode) = 0;
  virtual Result<Attributes> change_attributes(InodeNumber inode,
                                               const AttributeChange& change) = 0;
  // inode_flag_*. Content that the kernel still holds must have been written before: a file that is
  // immutable takes no writes at all, not even late ones.
  virtual Result<> set_flags(InodeNumber inode, std::uint32_t flags) = 0;
  virtual Result<std::string> get_xattr(InodeNumber inode, std::string_view name) = 0;
  virtual Result<> set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                             XattrMode mode, bool clear_sgid) = 0;
  virtual Result<> remove_xattr(InodeNumber inode, std::string_view name) = 0;
  virtual Result<std::vector<std::string>> list_xattrs(InodeNumber inode) = 0;

  // Data.
  virtual Result<std::size_t> read(InodeNumber inode, std::uint64_t offset,
                                   MutableByteView out) = 0;
  // The same bytes where they lie; in buffer, at their place in it, where that is nowhere.
  virtual Result<FileBytes> view(InodeNumber inode, std::uint64_t offset,
                                 MutableByteView buffer) = 0;
  virtual Result<> write(InodeNumber inode, std::uint64_t offset, ByteView bytes,
                         WriteFlags flags) = 0;
  // What write() of this many bytes would meet now; waits for room as write() does. Takes nothing.
  virtual Result<> check_write(InodeNumber inode, std::uint64_t bytes) = 0;
  virtual Result<> allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                            std::uint64_t length) = 0;
  virtual Result<std::uint64_t> seek(InodeNumber inode, std::uint64_t offset, SeekWhat what) = 0;
  // Returns how much was copied: less than length at the source's end, and where a request would
  // take too long. Holes stay holes.
  virtual Result<std::uint64_t> copy_range(InodeNumber from, std::uint64_t from_offset,
                                           InodeNumber to, std::uint64_t to_offset,
                                           std::uint64_t length) = 0;

  // Durability. done is called when the file's (or directory's) data, attributes and path are
  // durable: on the commit thread, or before sync_inode() returns when they are so already.
  virtual void sync_inode(InodeNumber inode, std::function<void(Result<>)> done) = 0;
  // Waits until everything is durable.
  virtual Result<> sync_all() = 0;

  // The path that the inode was last seen under, "(inode 7)" when none is known.
  virtual std::string path_of(InodeNumber inode) = 0;
  // What errors and messages call the inode: its path, or its number where files are not named.
  virtual std::string shown_name(InodeNumber inode) = 0;

  virtual Result<VolumeSpace> space() = 0;
};

}  // namespace nacre::fs
