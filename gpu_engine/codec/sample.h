// SPDX-License-Identifier: Apache-2.0
// Recognises, in two microseconds for 64 KiB, bytes that no codec could make noticeably smaller:
// noise, ciphertext, archives, pictures and films.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// False when a sample shows no byte to be more frequent than others and nothing that occurs twice:
// then hardly more than a hundredth could be saved. Each sub-block is sampled by itself. A short
// stretch is not worth a sample: alone it counts as compressible, and after other sub-blocks it is
// ignored.
bool looks_compressible(ByteView plain);

}  // namespace nacre::engine
