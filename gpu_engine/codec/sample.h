// SPDX-License-Identifier: Apache-2.0
// Recognises bytes that no codec could make noticeably smaller: noise, ciphertext, archives,
// pictures and films. A sample takes one or two microseconds for 64 KiB.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// False when the samples of all sub-blocks show neither a byte value that is more frequent than the
// others nor bytes that occur twice: then hardly more than a hundredth could be saved. Fewer than
// 4096 bytes are not sampled: alone they count as compressible, and at the end of a longer message
// they are ignored. No bytes are not compressible. Thread-safe.
bool looks_compressible(ByteView plain);

}  // namespace nacre::engine
