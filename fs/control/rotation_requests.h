// SPDX-License-Identifier: Apache-2.0
// The requests of the control socket that concern a rotation of keys:
//
//   rotate         begins a rotation: {"cipher": NAME, "codec": NAME, "level": N, "rate": BYTES/S},
//                  all of them optional; the reply has the new fingerprint
//   rotation       asks for the progress
//   rotation_pause, rotation_resume   the latter takes an optional new "rate"
//   rotation_verify                   reads the whole volume and verifies it
//
// Each reply has an object "rotation".
#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "fs/rotation/rotation.h"

namespace nacre::fs {

nlohmann::json to_json(const RotationStatus& status);
nlohmann::json to_json(const EpochCounts& counts);

// Parses the request rotate. Error: invalid_argument if a field has a wrong type or value.
Result<RotationOptions> parse_rotation_options(const nlohmann::json& message);

// Returns what the reply holds in addition to "ok", or an empty result if the command is none of
// these. If rotation is null, the error is read_only.
std::optional<Result<nlohmann::json>> handle_rotation(Rotation* rotation, std::string_view command,
                                                      const nlohmann::json& message);

}  // namespace nacre::fs
