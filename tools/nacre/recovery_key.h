// SPDX-License-Identifier: Apache-2.0
// Makes a recovery key: a random passphrase that is printed once and kept on paper.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::tools {

// 200 random bits as eight groups of five digits and capital letters, with '-' between the groups.
// The letters I, L, O and U are left out, because they look like others (Crockford's base 32).
SecretBytes make_recovery_key();

}  // namespace nacre::tools
