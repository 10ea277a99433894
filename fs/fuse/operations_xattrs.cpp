// SPDX-License-Identifier: Apache-2.0
// Extended attributes, and with them POSIX ACLs (system.posix_acl_access and _default). The kernel
// checks permissions by the ACLs that it reads here, and the volume keeps them in step with the
// mode. Setting an attribute is a raw request (raw_requests.cpp), since libfuse 3.14 does not know
// its present layout.
#include <linux/capability.h>
#include <linux/xattr.h>

#include "fs/fuse/operations.h"
#include "fs/fuse/shown_blocks.h"

namespace nacre::fs {

namespace {

using metadata::InodeNumber;

// Answers with text, or with its size if the caller asks for that (size 0).
Result<> answer_text(fuse_req_t request, std::string_view text, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, text.size());
    return {};
  }
  if (text.size() > size) return fail(ErrorCode::range);
  fuse_reply_buf(request, text.data(), text.size());
  return {};
}

void on_getxattr(fuse_req_t request, fuse_ino_t inode, const char* name, std::size_t size) {
  serve(request, "getxattr", inode, [&](Context& context) -> Result<> {
    if (context.no_xattr) {
      fuse_reply_err(request, ENOSYS);  // the kernel never asks again
      return {};
    }
    if (size == 0 && std::string_view(name) == XATTR_NAME_CAPS) {
      expect_writes(context, InodeNumber{inode});
    }
    NACRE_ASSIGN(const std::string value, context.volume->get_xattr(InodeNumber{inode}, name));
    return answer_text(request, value, size);
  });
}

void on_listxattr(fuse_req_t request, fuse_ino_t inode, std::size_t size) {
  serve(request, "listxattr", inode, [&](Context& context) -> Result<> {
    if (context.no_xattr) {
      fuse_reply_err(request, ENOSYS);
      return {};
    }
    NACRE_ASSIGN(const std::vector<std::string> names,
                 context.volume->list_xattrs(InodeNumber{inode}));
    std::string list;
    for (const std::string& name : names) {
      // Like other file systems, this one shows these names to administrators only.
      if (name.starts_with("trusted.") && !has_capability(requester_of(request), CAP_SYS_ADMIN)) {
        continue;
      }
      list += name;
      list += '\0';
    }
    return answer_text(request, list, size);
  });
}

void on_removexattr(fuse_req_t request, fuse_ino_t inode, const char* name) {
  serve(request, "removexattr", inode, [&](Context& context) -> Result<> {
    if (context.no_xattr) {
      fuse_reply_err(request, ENOSYS);
      return {};
    }
    NACRE_TRY(context.volume->remove_xattr(InodeNumber{inode}, name));
    fuse_reply_err(request, 0);
    return {};
  });
}

}  // namespace

void add_xattr_operations(fuse_lowlevel_ops& operations) {
  operations.getxattr = on_getxattr;
  operations.listxattr = on_listxattr;
  operations.removexattr = on_removexattr;
}

}  // namespace nacre::fs
