// SPDX-License-Identifier: Apache-2.0
// What a mount decides for as long as it lasts, and every call of the volume keeps to.
#pragma once

#include <cstdint>

namespace nacre::fs {

// When a read is noted as an access.
enum class AccessTimes : std::uint8_t {
  relative,  // when the file changed since the last noted one, else once a day
  always,
  never,
};

struct VolumeRules {
  bool read_only = false;
  bool may_name_files = true;  // in errors and messages; else they give inode numbers
  AccessTimes access_times = AccessTimes::relative;
};

}  // namespace nacre::fs
