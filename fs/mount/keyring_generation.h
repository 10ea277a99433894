// SPDX-License-Identifier: Apache-2.0
// Whether a volume's keyring is the newest that this volume was used with.
#pragma once

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

// used: the generation that the database has in its row keyring_generation, or the daemon's. Error:
// rolled_back.
inline Result<> check_keyring_generation(std::string_view volume, std::uint64_t generation,
                                         std::uint64_t used) {
  if (generation >= used) return {};
  return fail(ErrorCode::rolled_back,
              fmt::format("the keyring in {} is of generation {}, but the volume has already "
                          "been used with generation {}: it was put back to an older state; "
                          "restore the newer keyring",
                          volume, generation, used));
}

}  // namespace nacre::fs
