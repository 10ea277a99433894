// SPDX-License-Identifier: Apache-2.0
// The set-user-id and set-group-id bits, which a file loses when another user changes its content.
// The rules are those of ext4: a set-group-id bit without group execution stays for members of the
// file's group (and for holders of CAP_FSETID), and goes when others change the file. On a mount
// that shows other owners than are stored, every change takes all of the bits away.
#pragma once

#include <linux/capability.h>
#include <sys/stat.h>

#include "fs/fuse/capabilities.h"
#include "fs/fuse/operations.h"

namespace nacre::fs {

inline bool has_set_id_bits(const Attributes& attributes) {
  return S_ISREG(attributes.mode) && (attributes.mode & (S_ISUID | S_ISGID)) != 0;
}

// The bits that a change takes away if the requester may not keep them.
inline ClearSetId set_id_bits_to_clear(const OwnerView& owners, const Attributes& attributes,
                                       const Requester& requester) {
  if (owners.hides_set_id()) return ClearSetId::all;
  const bool is_plain_group_bit =
      S_ISREG(attributes.mode) && (attributes.mode & (S_ISGID | S_IXGRP)) == S_ISGID;
  if (!is_plain_group_bit || is_in_group(requester, attributes.gid) ||
      has_capability(requester, CAP_FSETID)) {
    return ClearSetId::those_that_lend;
  }
  return ClearSetId::all;
}

}  // namespace nacre::fs
