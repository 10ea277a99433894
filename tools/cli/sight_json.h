// SPDX-License-Identifier: Apache-2.0
// The JSON form of what a machine noted of a volume. The machine's own notes (witness.h), a witness
// elsewhere (outside_witness.h) and the output of `nacre witness` all have it.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/cli/witness.h"

namespace nacre::tools {

nlohmann::json to_json(const Sight& sight);
// Throws an exception of std if this is not what to_json() makes: others may have written it.
Sight sight_from(const nlohmann::json& object);

}  // namespace nacre::tools
