// SPDX-License-Identifier: Apache-2.0
// Decisions that a mount makes for its whole time, and that every call of the volume follows.
#pragma once

#include <cstdint>

namespace nacre::fs {

// Which reads are noted as an access.
enum class AccessTimes : std::uint8_t {
  relative,  // if the file changed since the last noted one, otherwise once a day
  always,
  never,
};

struct VolumeRules {
  bool read_only = false;
  bool may_name_files = true;  // in errors and messages; otherwise they have inode numbers
  AccessTimes access_times = AccessTimes::relative;
};

}  // namespace nacre::fs
