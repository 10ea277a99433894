// SPDX-License-Identifier: Apache-2.0
// The hand of an attacker on superblock and keyring: changes fields and puts the CRC-32 right, by
// its definition in metadata/text/document.h and not by that code.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gpu_engine/checksum/crc32.h"

namespace nacre::tests {

inline std::string text_of(nlohmann::json fields) {
  nlohmann::json covered = fields;
  covered.erase("crc32");
  fields["crc32"] = fmt::format("{:08x}", engine::crc32(0, as_bytes(covered.dump())));
  return fields.dump(2) + "\n";
}

inline std::string forge(std::string_view text,
                         const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json fields = nlohmann::json::parse(text);
  change(fields);
  return text_of(std::move(fields));
}

}  // namespace nacre::tests
