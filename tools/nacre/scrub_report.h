// SPDX-License-Identifier: Apache-2.0
// How nacre scrub and nacre stats report the scrub of a mounted volume.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace nacre::tools {

// A number or a text of a reply that anybody may have sent; 0 or empty if it is missing.
std::uint64_t number_of(const nlohmann::json& object, const char* name);
std::string text_of(const nlohmann::json& object, const char* name);
// The name of a file, made fit for a terminal.
std::string path_of(const nlohmann::json& object, const char* name);

// scrub: what fs::to_json() makes of a ScrubRow. One line: "running: 12.0 MiB of …".
std::string scrub_line(const nlohmann::json& scrub);
// Prints each damaged place with its files, and how the scrub ended.
void print_scrub(const std::string& volume, const nlohmann::json& scrub);

}  // namespace nacre::tools
