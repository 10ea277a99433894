// SPDX-License-Identifier: Apache-2.0
// The requests of the control socket that concern a rotation of keys:
//
//   rotate         begins one: {"cipher": NAME, "codec": NAME, "level": N, "rate": BYTES/S,
//                  "seals_size_bytes": N}, all of them optional; the reply names the new
//                  fingerprint. So many bytes of encode_seals() follow the line
//   rotation       how far it is
//   rotation_pause, rotation_resume   the latter with "rate" where it is to change
//   rotation_verify                   looks at everything; takes as long as that takes
//
// Each reply has an object "rotation".
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fs/rotation/rotation.h"

namespace nacre::fs {

nlohmann::json to_json(const RotationStatus& status);
nlohmann::json to_json(const EpochCounts& counts);

// Of the request rotate, but for the seals. invalid_argument when a field is not what it may be.
Result<RotationOptions> parse_rotation_options(const nlohmann::json& message);
// How many bytes of seals follow the request. invalid_argument when it is no size that they have.
Result<std::size_t> seals_size_bytes(const nlohmann::json& message);
// A seal is fingerprint [32], check [32], key [32]; passphrase_count_max of them at most. Those of
// recipients of format 1 are left out.
SecretBytes encode_seals(std::span<const metadata::RecipientSeal> seals);
std::vector<metadata::RecipientSeal> decode_seals(ByteView bytes);

// What the reply holds beside "ok"; none when the command is not one of these. rotation null:
// read_only. seals: what followed the request.
std::optional<Result<nlohmann::json>> handle_rotation(Rotation* rotation, std::string_view command,
                                                      const nlohmann::json& message,
                                                      std::vector<metadata::RecipientSeal> seals);

}  // namespace nacre::fs
