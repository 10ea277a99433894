// SPDX-License-Identifier: Apache-2.0
// Attributes: stat, chmod, chown, utimes, truncate, statfs, and the inode flags behind chattr and
// lsattr. The kernel has already checked the permission (permission bits, ownership,
// CAP_LINUX_IMMUTABLE).
#include <linux/fs.h>
#include <sys/statvfs.h>
#include <time.h>

#include "fs/fuse/late_refusal.h"
#include "fs/fuse/operations.h"
#include "fs/fuse/set_id_bits.h"
#include "fs/fuse/shown_blocks.h"
#include "fs/volume/kernel_clock.h"

namespace nacre::fs {

namespace {

using metadata::InodeNumber;

constexpr unsigned block_size_bytes = 4096;  // the unit in which statfs counts
// The fields that the kernel sends when it writes a file's times back. It ignores the attributes in
// the answer.
constexpr int times_by_the_kernel = FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME;

Timestamp to_timestamp(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

// The times come from utimensat(2), or from another change. The kernel keeps the times of regular
// files. It sends those of a write or of touch(1) in the same way as times that a program chose.
AttributeChange::Times whose_times(int fields) {
  using Times = AttributeChange::Times;
  const auto has = [fields](int field) { return (fields & field) != 0; };
  const bool accessed_now = has(FUSE_SET_ATTR_ATIME_NOW);
  const bool modified = has(FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW);
  if (has(FUSE_SET_ATTR_ATIME) && !accessed_now) return Times::chosen;
  if (accessed_now != modified && accessed_now) return Times::chosen;  // one of both was left out
  if (!modified) return Times::brought_along;
  if (has(FUSE_SET_ATTR_CTIME)) return Times::maybe_chosen;
  return accessed_now && has(FUSE_SET_ATTR_MTIME_NOW) ? Times::brought_along : Times::chosen;
}

AttributeChange to_change(const struct stat& wanted, int fields) {
  AttributeChange change;
  if ((fields & FUSE_SET_ATTR_MODE) != 0) change.mode = wanted.st_mode & 07777;
  if ((fields & FUSE_SET_ATTR_UID) != 0) change.uid = wanted.st_uid;
  if ((fields & FUSE_SET_ATTR_GID) != 0) change.gid = wanted.st_gid;
  if ((fields & FUSE_SET_ATTR_SIZE) != 0) change.size = static_cast<std::uint64_t>(wanted.st_size);
  if ((fields & FUSE_SET_ATTR_ATIME_NOW) != 0) {
    change.accessed = kernel_now();
  } else if ((fields & FUSE_SET_ATTR_ATIME) != 0) {
    change.accessed = to_timestamp(wanted.st_atim);
  }
  if ((fields & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    change.modified = kernel_now();
  } else if ((fields & FUSE_SET_ATTR_MTIME) != 0) {
    change.modified = to_timestamp(wanted.st_mtim);
  }
  if ((fields & FUSE_SET_ATTR_CTIME) != 0) change.changed = to_timestamp(wanted.st_ctim);
  change.times = whose_times(fields);
  return change;
}

// A new size may take the set-id bits away, and a new owner does.
Result<ClearSetId> set_id_bits_lost(Context& context, fuse_req_t request, InodeNumber inode,
                                    int fields) {
  // This is libfuse's name for the kernel's FATTR_KILL_SUIDGID.
  const bool may_not_keep =
      (fields & (FUSE_SET_ATTR_KILL_SUID | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0 ||
      ((fields & FUSE_SET_ATTR_SIZE) != 0 && context.owners.hides_set_id());
  if (!may_not_keep) return ClearSetId::none;
  NACRE_ASSIGN(const Attributes before, context.volume->attributes(inode));
  if (!has_set_id_bits(before)) return ClearSetId::none;
  return set_id_bits_to_clear(context.owners, before, requester_of(request));
}

void answer_getattr(Context& context, fuse_req_t request, const Attributes& attributes,
                    double timeout) {
  const struct stat reply = to_stat(context, attributes);
  keep_asking(context, attributes.inode, S_ISREG(attributes.mode), requester_of(request).process);
  fuse_reply_attr(request, &reply, timeout);
}

void on_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* open_file) {
  serve(request, "getattr", inode, [&](Context& context) -> Result<> {
    const InodeNumber number{inode};
    if (open_file != nullptr && asks_to_write(context, number)) {
      return answer_asking_writer(context, request, inode);
    }
    NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(number));
    if (open_file == nullptr && looks_at_unwritten(context, attributes)) {
      answer_look(context, number, [request, inode] {
        serve(request, "getattr", inode, [&](Context& answering) -> Result<> {
          NACRE_ASSIGN(const Attributes written, answering.volume->attributes(InodeNumber{inode}));
          answer_getattr(answering, request, written, seconds_of_attributes(answering, written));
          return {};
        });
      });
      return {};
    }
    if (open_file == nullptr) {
      answer_getattr(context, request, attributes, seconds_of_attributes(context, attributes));
    } else {
      answer_getattr(context, request, attributes, attributes_timeout);
      forget_blocks_for_writer(context, attributes);
    }
    return {};
  });
}

void on_setattr(fuse_req_t request, fuse_ino_t inode, struct stat* wanted, int fields,
                fuse_file_info*) {
  serve(request, "setattr", inode, [&](Context& context) -> Result<> {
    const InodeNumber number{inode};
    AttributeChange change = to_change(*wanted, fields);
    NACRE_ASSIGN(change.clear_set_id, set_id_bits_lost(context, request, number, fields));
    NACRE_ASSIGN(const Attributes attributes, context.volume->change_attributes(number, change));
    if (S_ISDIR(attributes.mode)) context.listings.changed(number);
    const struct stat reply = to_stat(context, attributes);
    double timeout = seconds_of_attributes(context, attributes);
    if ((fields & FUSE_SET_ATTR_SIZE) != 0 && attributes.size == 0) {
      timeout = seconds_for_new_content(context, number,
                                        requester_of(request).process);  // O_TRUNC comes as this
    } else if ((fields & ~times_by_the_kernel) != 0) {
      context.write_gate.leave_ajar(number);
    }
    fuse_reply_attr(request, &reply, timeout);
    return {};
  });
}

void on_statfs(fuse_req_t request, fuse_ino_t inode) {
  serve(request, "statfs", inode, [&](Context& context) -> Result<> {
    has_little_room(context);  // whoever takes a look makes the daemon take one
    NACRE_ASSIGN(const VolumeSpace space, context.volume->space());
    struct statvfs reply = {};
    reply.f_bsize = block_size_bytes;
    reply.f_frsize = block_size_bytes;
    reply.f_blocks = space.total_bytes / block_size_bytes;
    reply.f_bfree = space.free_bytes / block_size_bytes;
    reply.f_bavail = space.available_bytes / block_size_bytes;
    reply.f_files = space.inode_count;
    reply.f_ffree = space.free_inodes;
    reply.f_favail = space.free_inodes;
    reply.f_namemax = metadata::name_size_bytes_max;
    fuse_reply_statfs(request, &reply);
    return {};
  });
}

// One flag in its three spellings.
struct FlagName {
  std::uint32_t inode_flag;  // metadata::inode_flag_*
  std::uint32_t fs_flag;     // FS_IOC_GETFLAGS
  std::uint32_t xflag;       // FS_IOC_FSGETXATTR
};
constexpr FlagName flag_names[] = {
    {metadata::inode_flag_immutable, FS_IMMUTABLE_FL, FS_XFLAG_IMMUTABLE},
    {metadata::inode_flag_append, FS_APPEND_FL, FS_XFLAG_APPEND},
    {metadata::inode_flag_no_dump, FS_NODUMP_FL, FS_XFLAG_NODUMP},
    {metadata::inode_flag_no_atime, FS_NOATIME_FL, FS_XFLAG_NOATIME},
};

std::uint32_t spell(std::uint32_t flags, std::uint32_t FlagName::*from,
                    std::uint32_t FlagName::*to) {
  std::uint32_t result = 0;
  for (const FlagName& name : flag_names) {
    if ((flags & name.*from) != 0) result |= name.*to;
  }
  return result;
}

// Sets the flags that are given in one of the other spellings, and answers. Error: unsupported if
// Nacre does not have a flag. An immutable file takes no late writes, so the kernel must hand over
// its dirty pages first. That is done on the thread that may wait for them.
Result<> answer_set_flags(Context& context, fuse_req_t request, fuse_ino_t inode,
                          std::uint32_t wanted, std::uint32_t FlagName::*spelling) {
  const std::uint32_t flags = spell(wanted, spelling, &FlagName::inode_flag);
  if (spell(flags, &FlagName::inode_flag, spelling) != wanted) {
    return fail(ErrorCode::unsupported);
  }
  context.kernel->post([request, inode, flags] {
    serve(request, "ioctl", inode, [&](Context& answering) -> Result<> {
      const InodeNumber number{inode};
      answering.kernel->write_out(number);
      NACRE_TRY(answering.volume->set_flags(number, flags));
      answering.kernel->forget_attributes(number);  // because of the change time
      fuse_reply_ioctl(request, 0, nullptr, 0);
      return {};
    });
  });
  return {};
}

// The kernel reads and writes an int here, whatever the ioctl's number says.
constexpr std::size_t flags_size_bytes = sizeof(std::uint32_t);

void on_ioctl(fuse_req_t request, fuse_ino_t inode, unsigned command, void*, fuse_file_info*,
              unsigned, const void* input, std::size_t input_size, std::size_t output_size) {
  serve(request, "ioctl", inode, [&](Context& context) -> Result<> {
    const InodeNumber number{inode};
    switch (command) {
      case FS_IOC_GETFLAGS: {
        if (output_size < flags_size_bytes) break;
        NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(number));
        const std::uint32_t flags =
            spell(attributes.flags, &FlagName::inode_flag, &FlagName::fs_flag);
        fuse_reply_ioctl(request, 0, &flags, sizeof flags);
        return {};
      }
      case FS_IOC_SETFLAGS: {
        if (input_size < flags_size_bytes) break;
        return answer_set_flags(context, request, inode,
                                load_le<std::uint32_t>(static_cast<const Byte*>(input)),
                                &FlagName::fs_flag);
      }
      case FS_IOC_FSGETXATTR: {
        if (output_size < sizeof(fsxattr)) break;
        NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(number));
        fsxattr reply = {};
        reply.fsx_xflags = spell(attributes.flags, &FlagName::inode_flag, &FlagName::xflag);
        fuse_reply_ioctl(request, 0, &reply, sizeof reply);
        return {};
      }
      case FS_IOC_FSSETXATTR: {
        if (input_size < sizeof(fsxattr)) break;
        const auto wanted = load_le<fsxattr>(static_cast<const Byte*>(input));
        // There are neither extent hints nor projects here.
        if (wanted.fsx_extsize != 0 || wanted.fsx_cowextsize != 0 || wanted.fsx_projid != 0) {
          return fail(ErrorCode::unsupported);
        }
        return answer_set_flags(context, request, inode, wanted.fsx_xflags, &FlagName::xflag);
      }
      default:
        break;
    }
    fuse_reply_err(request, ENOTTY);
    return {};
  });
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = on_getattr;
  operations.setattr = on_setattr;
  operations.statfs = on_statfs;
  operations.ioctl = on_ioctl;
}

}  // namespace nacre::fs
