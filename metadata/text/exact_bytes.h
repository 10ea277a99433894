// SPDX-License-Identifier: Apache-2.0
// Names of files in JSON. A name may hold any bytes, and a string of JSON holds UTF-8. So a name
// that is not UTF-8 stands there twice: as a text to show, with U+FFFD in place of what cannot be
// shown, and exactly:
//
//   "volume": "/srv/\ufffd", "volume_base64": "L3Nydi//"
//
// A name that is UTF-8 has the first field alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nacre::metadata {

bool is_utf8(std::string_view bytes);

void put_bytes(nlohmann::json& object, const std::string& name, std::string_view bytes);
// A list of names: if any is not UTF-8, the second list has all of them.
void put_bytes(nlohmann::json& object, const std::string& name,
               const std::vector<std::string>& list);

// What put_bytes() put there. None if the field is missing or has another form.
std::optional<std::string> get_bytes(const nlohmann::json& object, const std::string& name);

// JSON on one line. Bytes in strings that are not UTF-8 are replaced, and nothing is thrown.
std::string to_json_line(const nlohmann::json& value);

}  // namespace nacre::metadata
