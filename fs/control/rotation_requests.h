// SPDX-License-Identifier: Apache-2.0
// The requests of the control socket that concern a rotation of keys:
//
//   rotate         begins a rotation: {"cipher": NAME, "codec": NAME, "level": N, "rate": BYTES/S,
//                  "format": 2, "accept_unreadable": BOOL, "seals_size_bytes": N}, all of them
//                  optional; the reply has the new fingerprint, and the "format" of what is sealed
//                  from now on. In format 2 all records are read first ("survey"), and the reply
//                  has "survey": true and no fingerprint.
//                  The line is followed by seals_size_bytes bytes, which encode_seals() made
//   rotation       asks for the progress; the reply has the fingerprint of the key in use
//   rotation_pause, rotation_resume   the latter takes an optional new "rate"
//   rotation_verify                   reads the whole volume and verifies it
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

// Parses the request rotate without the seals. Error: invalid_argument if a field has a wrong type
// or value.
Result<RotationOptions> parse_rotation_options(const nlohmann::json& message);
// The number of bytes of seals that follow the request. Error: invalid_argument if seals cannot
// have this size.
Result<std::size_t> seals_size_bytes(const nlohmann::json& message);
// Seals with which passphrases get the new key (metadata/keys/keyring.h, RecipientSeal). Each is
// encoded as fingerprint [32], check [32], key [32]. There are at most passphrase_count_max. Those
// of recipients of format 1 are left out.
SecretBytes encode_seals(std::span<const metadata::RecipientSeal> seals);
std::vector<metadata::RecipientSeal> decode_seals(ByteView bytes);

// Returns what the reply holds in addition to "ok", or an empty result if the command is none of
// these. If rotation is null, the error is read_only. seals are those that followed the request.
std::optional<Result<nlohmann::json>> handle_rotation(Rotation* rotation, std::string_view command,
                                                      const nlohmann::json& message,
                                                      std::vector<metadata::RecipientSeal> seals);

}  // namespace nacre::fs
