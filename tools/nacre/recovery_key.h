// SPDX-License-Identifier: Apache-2.0
// A passphrase that nobody has to remember: printed once, kept on paper.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::tools {

// 200 random bits as eight groups of five digits and capital letters, without those that look like
// others (I, L, O, U: Crockford's base 32), with '-' between the groups.
SecretBytes make_recovery_key();

}  // namespace nacre::tools
