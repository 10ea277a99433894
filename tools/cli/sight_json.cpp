// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/sight_json.h"

#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "metadata/text/text_bytes.h"

namespace nacre::tools {

namespace {

constexpr std::size_t time_size_max = 32;

// A signed or broken number would be read as another one.
std::uint64_t number_of(const nlohmann::json& object, const char* name) {
  const auto& value = object.at(name);
  if (!value.is_number_unsigned()) throw std::invalid_argument(fmt::format("{} is no count", name));
  return value.get<std::uint64_t>();
}

std::string time_of(const nlohmann::json& object) {
  auto time = object.at("time").get<std::string>();
  if (time.size() > time_size_max ||
      time.find_first_not_of("0123456789-+:.TZ") != std::string::npos) {
    throw std::invalid_argument("no time");
  }
  return time;
}

}  // namespace

nlohmann::json to_json(const Sight& sight) {
  return {{"time", sight.time},
          {"session_count", sight.age.session_count},
          {"session", metadata::to_hex(sight.age.session)},
          {"change_count", sight.age.change_count},
          {"keyring_generation", sight.keyring_generation},
          {"superblock_generation", sight.superblock_generation}};
}

Sight sight_from(const nlohmann::json& object) {
  Sight sight{.time = time_of(object),
              .age = {.session_count = number_of(object, "session_count"),
                      .change_count = number_of(object, "change_count")},
              .keyring_generation = number_of(object, "keyring_generation"),
              .superblock_generation = number_of(object, "superblock_generation")};
  const auto salt = object.at("session").get<std::string>();
  if (salt.size() != 2 * sight.age.session.size() || !metadata::from_hex(salt, sight.age.session)) {
    throw std::invalid_argument("no session's salt");
  }
  return sight;
}

}  // namespace nacre::tools
