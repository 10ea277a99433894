// SPDX-License-Identifier: Apache-2.0
// Names: finding, making, linking, moving and removing them.
#include <fcntl.h>
#include <linux/fs.h>

#include "fs/fuse/late_refusal.h"
#include "fs/fuse/operations.h"

namespace nacre::fs {

namespace {

using metadata::InodeNumber;

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  serve(request, "lookup", parent, [&](Context& context) -> Result<> {
    // With "." the kernel asks for the inode of a handle. The file that it makes from the answer is
    // named "/" until a process comes to it by a path, and overlayfs asks whether that name is
    // good.
    const bool itself = std::string_view(name) == "." || std::string_view(name) == "/";
    const Result<Attributes> found = itself ? context.volume->lookup_inode(InodeNumber{parent})
                                            : context.volume->lookup(InodeNumber{parent}, name);
    if (found) {
      if (!itself) let_size_go(context, found->inode, InodeNumber{parent}, name);
      reply_entry(context, request, *found);
      return {};
    }
    if (found.error().code != ErrorCode::not_found || itself) {
      return tl::unexpected<Error>(found.error());
    }
    // Inode 0 makes the kernel remember that the name does not exist.
    fuse_entry_param nothing = {};
    nothing.entry_timeout = cache_timeout;
    fuse_reply_entry(request, &nothing);
    return {};
  });
}

void on_forget(fuse_req_t request, fuse_ino_t inode, std::uint64_t lookups) {
  forget(context_of(request), inode, lookups);
  fuse_reply_none(request);
}

void on_forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i) {
    forget(context_of(request), forgets[i].ino, forgets[i].nlookup);
  }
  fuse_reply_none(request);
}

// Answers a call that made an entry of parent, with sync_names once the names are durable.
Result<> answer_made(Context& context, fuse_req_t request, fuse_ino_t parent,
                     const Result<Attributes>& made) {
  if (!made) return tl::unexpected<Error>(made.error());
  context.listings.changed(InodeNumber{parent});
  if (Result<> settled = settle_names(context, parent); !settled) {
    context.volume->forget(made->inode, 1);
    return settled;
  }
  context.write_gate.leave_ajar(made->inode);  // it may be a file that got a second name
  reply_entry(context, request, *made);
  return {};
}

void on_mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  serve(request, "mknod", parent, [&](Context& context) -> Result<> {
    return answer_made(
        context, request, parent,
        context.volume->make_node(InodeNumber{parent}, name, caller_of(request), mode, rdev));
  });
}

void on_mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  serve(request, "mkdir", parent, [&](Context& context) -> Result<> {
    return answer_made(
        context, request, parent,
        context.volume->make_directory(InodeNumber{parent}, name, caller_of(request), mode));
  });
}

void on_symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  serve(request, "symlink", parent, [&](Context& context) -> Result<> {
    return answer_made(
        context, request, parent,
        context.volume->make_symlink(InodeNumber{parent}, name, caller_of(request), target));
  });
}

void on_link(fuse_req_t request, fuse_ino_t inode, fuse_ino_t parent, const char* name) {
  serve(request, "link", inode, [&](Context& context) -> Result<> {
    return answer_made(context, request, parent,
                       context.volume->link(InodeNumber{inode}, InodeNumber{parent}, name));
  });
}

void on_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* file) {
  serve(request, "create", parent, [&](Context& context) -> Result<> {
    NACRE_ASSIGN(const Attributes made,
                 context.volume->make_node(InodeNumber{parent}, name, caller_of(request),
                                           S_IFREG | (mode & 07777), 0));
    context.listings.changed(InodeNumber{parent});
    if (Result<> settled = settle_names(context, parent); !settled) {
      context.volume->forget(made.inode, 1);
      return settled;
    }
    fuse_entry_param entry = to_entry(context, made);
    entry.attr_timeout =
        seconds_for_new_content(context, made.inode, requester_of(request).process);
    file->keep_cache = 1;
    note_known(context, made.inode);
    if (fuse_reply_create(request, &entry, file) != 0) context.volume->forget(made.inode, 1);
    return {};
  });
}

void on_unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  serve(request, "unlink", parent, [&](Context& context) -> Result<> {
    NACRE_TRY(context.volume->unlink(InodeNumber{parent}, name));
    context.listings.changed(InodeNumber{parent});
    NACRE_TRY(settle_names(context, parent));
    fuse_reply_err(request, 0);
    return {};
  });
}

void on_rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
  serve(request, "rmdir", parent, [&](Context& context) -> Result<> {
    NACRE_TRY(context.volume->remove_directory(InodeNumber{parent}, name));
    context.listings.changed(InodeNumber{parent});
    NACRE_TRY(settle_names(context, parent));
    fuse_reply_err(request, 0);
    return {};
  });
}

Result<RenameMode> rename_mode(unsigned flags) {
  switch (flags) {
    case 0:
      return RenameMode::replace;
    case RENAME_NOREPLACE:
      return RenameMode::no_replace;
    case RENAME_EXCHANGE:
      return RenameMode::exchange;
    default:
      return fail(ErrorCode::invalid_argument);
  }
}

// RENAME_WHITEOUT is for overlayfs, whose upper directory needs it. The kernel refuses it together
// with an exchange.
Result<> rename(Context& context, fuse_req_t request, fuse_ino_t parent, const char* name,
                fuse_ino_t new_parent, const char* new_name, unsigned flags) {
  NACRE_ASSIGN(const RenameMode mode, rename_mode(flags & ~static_cast<unsigned>(RENAME_WHITEOUT)));
  const InodeNumber from{parent};
  const InodeNumber to{new_parent};
  if ((flags & RENAME_WHITEOUT) == 0) return context.volume->rename(from, name, to, new_name, mode);
  return context.volume->rename_over_whiteout(from, name, to, new_name, mode, caller_of(request));
}

void on_rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
               const char* new_name, unsigned flags) {
  serve(request, "rename", parent, [&](Context& context) -> Result<> {
    NACRE_TRY(rename(context, request, parent, name, new_parent, new_name, flags));
    context.listings.changed(InodeNumber{parent});
    if (parent != new_parent) context.listings.changed(InodeNumber{new_parent});
    NACRE_TRY(settle_names(context, new_parent));
    if (parent != new_parent) NACRE_TRY(settle_names(context, parent));
    fuse_reply_err(request, 0);
    return {};
  });
}

void on_readlink(fuse_req_t request, fuse_ino_t inode) {
  serve(request, "readlink", inode, [&](Context& context) -> Result<> {
    NACRE_ASSIGN(const std::string target, context.volume->read_symlink(InodeNumber{inode}));
    fuse_reply_readlink(request, target.c_str());
    return {};
  });
}

}  // namespace

void forget(Context& context, fuse_ino_t inode, std::uint64_t lookups) noexcept try {
  context.write_gate.forget(InodeNumber{inode});
  context.refused_pages.forget(InodeNumber{inode});
  context.written_files.forget(InodeNumber{inode});
  context.listings.forget(InodeNumber{inode});
  const auto forget_lookups = [&] { return context.volume->forget(InodeNumber{inode}, lookups); };
  if (context.known != nullptr) {
    context.known->forget(InodeNumber{inode}, forget_lookups);
  } else {
    forget_lookups();
  }
} catch (const std::exception& exception) {
  context.faults.note(*context.volume, "forget", InodeNumber{inode},
                      Error{ErrorCode::io, exception.what()});
}

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = on_lookup;
  operations.forget = on_forget;
  operations.forget_multi = on_forget_multi;
  operations.mknod = on_mknod;
  operations.mkdir = on_mkdir;
  operations.symlink = on_symlink;
  operations.link = on_link;
  operations.create = on_create;
  operations.unlink = on_unlink;
  operations.rmdir = on_rmdir;
  operations.rename = on_rename;
  operations.readlink = on_readlink;
}

}  // namespace nacre::fs
