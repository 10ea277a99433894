// SPDX-License-Identifier: Apache-2.0
// The requests of the control socket that are about a rotation of keys:
//
//   rotate         begins one: {"cipher": NAME, "codec": NAME, "level": N, "rate": BYTES/S}, all of
//                  them optional; the reply names the new fingerprint
//   rotation       how far it is
//   rotation_pause, rotation_resume   the latter with "rate" where it is to change
//   rotation_verify                   looks at everything; takes as long as that takes
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

// Of the request rotate. invalid_argument when a field is not what it may be.
Result<RotationOptions> parse_rotation_options(const nlohmann::json& message);

// What the reply holds beside "ok"; none when the command is not one of these. rotation null:
// read_only.
std::optional<Result<nlohmann::json>> handle_rotation(Rotation* rotation, std::string_view command,
                                                      const nlohmann::json& message);

}  // namespace nacre::fs
