// SPDX-License-Identifier: Apache-2.0
// Tells in two microseconds for 64 KiB what no codec could make noticeably smaller: noise,
// ciphertext, archives, pictures and films.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// False when a sample shows no byte to be more frequent than others and nothing that occurs twice:
// then hardly more than a hundredth could be saved. Each sub-block is looked at for itself. What is
// short is not worth a sample: it counts as compressible alone, and for nothing behind others.
bool looks_compressible(ByteView plain);

}  // namespace nacre::engine
