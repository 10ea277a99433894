// SPDX-License-Identifier: Apache-2.0
// The set-user-id and set-group-id bits, which a file loses when somebody else changes its content.
#pragma once

#include <sys/stat.h>

#include "fs/volume/volume.h"

namespace nacre::fs {

// Whether the file has a bit to lose. A set-group-id bit without group execution means mandatory
// locking and stays.
inline bool has_set_id_bits(const Attributes& attributes) {
  constexpr std::uint32_t set_group_id = S_ISGID | S_IXGRP;
  return S_ISREG(attributes.mode) &&
         ((attributes.mode & S_ISUID) != 0 || (attributes.mode & set_group_id) == set_group_id);
}

}  // namespace nacre::fs
