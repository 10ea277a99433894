// SPDX-License-Identifier: Apache-2.0
// What was seen of a volume, as JSON: in the machine's own memory (witness.h), in a witness that
// lies elsewhere (outside_witness.h), and in the output of `nacre witness`.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/cli/witness.h"

namespace nacre::tools {

nlohmann::json to_json(const Sight& sight);
// Throws an exception of std if this is not what to_json() makes: others may have written it.
Sight sight_from(const nlohmann::json& object);

}  // namespace nacre::tools
