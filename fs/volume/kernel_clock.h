// SPDX-License-Identifier: Apache-2.0
// The clock from which the kernel takes the times of files. Since Linux 6.13 no call returns it: it
// is the coarse clock, but never earlier than the last finer time that some file system took. The
// kernel itself sets times on what it caches of a mount. Times that this process sets must come
// from the same clock, or a later change may look older than an earlier one.
#pragma once

#include "metadata/format/rows.h"

namespace nacre::fs {

// Thread-safe.
metadata::Timestamp kernel_now();

}  // namespace nacre::fs
