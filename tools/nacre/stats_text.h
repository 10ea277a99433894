// SPDX-License-Identifier: Apache-2.0
// The lines that nacre stats prints for people: a name and a text, within 80 columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace nacre::tools {

inline constexpr std::size_t stats_width = 80;

// Prints a line, wrapped between clauses, and within long clauses between words. A word longer than
// a line stays whole.
void print_stats_line(std::string_view name, std::string_view value);
// " (12.3 %)", or nothing if the whole is 0.
std::string share_of(std::uint64_t part, std::uint64_t whole);
// The object of that name; an empty one if there is none.
nlohmann::json part_of_stats(const nlohmann::json& object, const char* name);
// "12.3 µs"
std::string format_duration(std::uint64_t ns);

// reply: the daemon's answer to "stats".
void print_mounted_stats(const nlohmann::json& reply);

}  // namespace nacre::tools
