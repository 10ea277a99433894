// SPDX-License-Identifier: Apache-2.0
// The calls of a file system: POSIX files and directories by inode number, on tables and file data.
// fs/fuse only translates the kernel's messages into these calls; tests call them directly.
// fs/mount puts together the parts that run beneath them. The kernel checks permission bits
// (default_permissions). What only the volume knows (immutable and append-only flags, the read-only
// state, limits) is checked here.
//
// Thread-safe. Each entry that lookup(), make_*(), link() or read_directory(with attributes)
// returns counts as one lookup of its inode until forget() takes it back. An inode whose last name
// is gone lives on until its lookups are forgotten, and at the latest until the next mount.
//
// A call fails as the POSIX call of the same purpose does (not_found, exists, not_empty,
// not_permitted, too_many_links, no_attribute, …). Any call may also return: stale if the inode is
// gone; corrupt, tampered, missing or io if stored data is damaged or cannot be read;
// out_of_memory. Calls that change something may return read_only, and no_space if they need room.
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

// The process that makes a call, which will own new files.
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
  std::uint64_t blocks = 0;  // in units of 512 bytes
  bool has_holes = false;    // of a regular file, as far as the volume knows
  Timestamp accessed, modified, changed, born;
};

// Which of a file's set-id bits (set-user-id, set-group-id) a change removes.
enum class ClearSetId : std::uint8_t {
  none,
  those_that_lend,  // set-user-id, and set-group-id if the group may execute
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
  // Where the times come from: from a write or touch(1) (brought_along), or from a program that
  // names a time (chosen). Append-only files refuse chosen times. The kernel also sends times of
  // its own, which look like chosen ones: maybe_chosen.
  enum class Times : std::uint8_t { brought_along, maybe_chosen, chosen };
  Times times = Times::brought_along;
  ClearSetId clear_set_id = ClearSetId::none;  // FATTR_KILL_SUIDGID
};

struct DirectoryEntry {
  std::string_view name;
  InodeNumber inode;
  std::uint8_t type = 0;  // DT_*
  // The cookie with which a listing goes on after this entry.
  std::uint64_t cookie = 0;
  // Set only if asked for. Not set for "." and "..", nor if the inode is damaged: such an entry is
  // listed, too, but does not count as a lookup.
  const Attributes* attributes = nullptr;
};

enum class RenameMode : std::uint8_t { replace, no_replace, exchange };
enum class XattrMode : std::uint8_t { set, create, replace };
struct WriteFlags {
  ClearSetId clear_set_id = ClearSetId::none;  // FUSE_WRITE_KILL_SUIDGID
  // The writer was told long ago that the bytes are taken (FUSE_WRITE_CACHE), so a full disk is no
  // reason to drop them. They wait in memory, within the dirty budget, until there is room. Until
  // then each sync of the file returns no_space. If the ballast was given up, they are refused.
  bool is_taken = false;
};

enum class AllocateMode : std::uint8_t { allocate, keep_size, punch_hole, zero, zero_keep_size };

struct VolumeSpace {
  std::uint64_t total_bytes = 0, free_bytes = 0, available_bytes = 0;
  // inode_count has the inodes in use and the free ones.
  std::uint64_t inode_count = 0, free_inodes = 0;
};

class Volume {
 public:
  virtual ~Volume() = default;

  // Names. A name has 1 to 255 bytes without '/' and NUL, and is neither "." nor ".." (but lookup
  // takes both, for NFS).
  virtual Result<Attributes> lookup(InodeNumber parent, std::string_view name) = 0;
  // For NFS: finds an inode by its number. Error: stale if it is gone.
  virtual Result<Attributes> lookup_inode(InodeNumber inode) = 0;
  // Returns whether lookups of the inode are left.
  virtual bool forget(InodeNumber inode, std::uint64_t lookups) = 0;
  virtual Result<Attributes> make_node(InodeNumber parent, std::string_view name,
                                       const Caller& caller, std::uint32_t mode,
                                       std::uint64_t rdev) = 0;  // regular files too
  virtual Result<Attributes> make_directory(InodeNumber parent, std::string_view name,
                                            const Caller& caller, std::uint32_t mode) = 0;
  virtual Result<Attributes> make_symlink(InodeNumber parent, std::string_view name,
                                          const Caller& caller, std::string_view target) = 0;
  // Makes a regular file without a name (O_TMPFILE). link() can give it one.
  virtual Result<Attributes> make_unnamed(InodeNumber parent, const Caller& caller,
                                          std::uint32_t mode) = 0;
  virtual Result<Attributes> link(InodeNumber inode, InodeNumber parent, std::string_view name) = 0;
  virtual Result<> unlink(InodeNumber parent, std::string_view name) = 0;
  virtual Result<> remove_directory(InodeNumber parent, std::string_view name) = 0;
  virtual Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                          std::string_view new_name, RenameMode mode) = 0;
  // The same, but not for exchange. Under the old name it leaves a whiteout that the caller owns,
  // as overlayfs needs it: a character device 0/0 that no process may open.
  virtual Result<> rename_over_whiteout(InodeNumber parent, std::string_view name,
                                        InodeNumber new_parent, std::string_view new_name,
                                        RenameMode mode, const Caller& caller) = 0;
  virtual Result<std::string> read_symlink(InodeNumber inode) = 0;
  // Calls take for entries after cookie (0: from the start) until it returns false. The entry for
  // which it returned false does not count as looked up. Cookies stay right while entries come and
  // go. take must not call the volume.
  virtual Result<> read_directory(InodeNumber inode, std::uint64_t cookie, bool with_attributes,
                                  const std::function<bool(const DirectoryEntry&)>& take) = 0;
  // Reads ahead in large directories that are being listed. Called by a thread that has just sent a
  // reply.
  virtual void go_on_listing() noexcept = 0;

  // Attributes.
  virtual Result<Attributes> attributes(InodeNumber inode) = 0;
  virtual Result<Attributes> change_attributes(InodeNumber inode,
                                               const AttributeChange& change) = 0;
  // Sets the inode's flags (metadata::inode_flag_*). The caller first writes the content that the
  // kernel still holds: an immutable file takes no writes at all, not even late ones.
  virtual Result<> set_flags(InodeNumber inode, std::uint32_t flags) = 0;
  virtual Result<std::string> get_xattr(InodeNumber inode, std::string_view name) = 0;
  virtual Result<> set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                             XattrMode mode, bool clear_sgid) = 0;
  virtual Result<> remove_xattr(InodeNumber inode, std::string_view name) = 0;
  virtual Result<std::vector<std::string>> list_xattrs(InodeNumber inode) = 0;

  // Data of regular files.
  // Reads up to out.size() bytes; fewer only at the end of the file.
  virtual Result<std::size_t> read(InodeNumber inode, std::uint64_t offset,
                                   MutableByteView out) = 0;
  // Like read(), but returns views. Bytes that lie in memory are not copied. The others are read
  // into buffer, each at its place, so buffer must live as long as the result is used.
  virtual Result<FileBytes> view(InodeNumber inode, std::uint64_t offset,
                                 MutableByteView buffer) = 0;
  virtual Result<> write(InodeNumber inode, std::uint64_t offset, ByteView bytes,
                         WriteFlags flags) = 0;
  // Returns the error that write() of this many bytes would return now, if kept_bytes of room were
  // used before. Waits for room as write() does. Takes nothing. Otherwise returns the room that the
  // write may take on disk, wherever in the file it is.
  virtual Result<std::uint64_t> check_write(InodeNumber inode, std::uint64_t bytes,
                                            std::uint64_t kept_bytes) = 0;
  virtual Result<> allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                            std::uint64_t length) = 0;
  virtual Result<std::uint64_t> seek(InodeNumber inode, std::uint64_t offset, SeekWhat what) = 0;
  // Returns how many bytes were copied. These are fewer than length at the source's end, and if the
  // request would take too long. Holes stay holes.
  virtual Result<std::uint64_t> copy_range(InodeNumber from, std::uint64_t from_offset,
                                           InodeNumber to, std::uint64_t to_offset,
                                           std::uint64_t length) = 0;

  // Durability. done is called when the data, attributes and path of the file or directory are
  // durable. It is called on the commit thread. If they are durable already, it is called on this
  // thread, before sync_inode() returns.
  virtual void sync_inode(InodeNumber inode, std::function<void(Result<>)> done) = 0;
  // Waits until everything is durable.
  virtual Result<> sync_all() = 0;

  // The last known path of the inode, or "(inode 7)" if none is known.
  virtual std::string path_of(InodeNumber inode) = 0;
  // The inode's name in errors and messages: its path, or its number if files are not named.
  virtual std::string shown_name(InodeNumber inode) = 0;

  virtual Result<VolumeSpace> space() = 0;
};

}  // namespace nacre::fs
