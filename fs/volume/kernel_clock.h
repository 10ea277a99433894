// SPDX-License-Identifier: Apache-2.0
// The clock that the kernel stamps files with. Since Linux 6.13 no call tells it: it is the coarse
// clock, but never behind the last finer stamp that some file system gave. The kernel stamps what
// it caches of a mount by itself, so what this process stamps must come from the same clock, or
// what is changed later may look older.
#pragma once

#include "metadata/format/rows.h"

namespace nacre::fs {

// Thread-safe.
metadata::Timestamp kernel_now();

}  // namespace nacre::fs
