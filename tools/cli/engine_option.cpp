// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/engine_option.h"

#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "tools/cli/own_files.h"

namespace nacre::tools {
namespace {

// Empty if no folder is known; then costs are measured each time.
std::string cost_file() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const bool has_cache = cache != nullptr && *cache == '/';
  if (!has_cache && (home == nullptr || *home != '/')) return {};
  const std::string base = has_cache ? cache : std::string(home) + "/.cache";
  if (may_keep_files(has_cache ? "" : home, base)) return base + "/nacre/engine-costs";
  return {};
}

}  // namespace

Result<engine::EngineChoice> parse_engine(std::string_view name) {
  if (name == "auto") return engine::EngineChoice::automatic;
  if (name == "cpu") return engine::EngineChoice::cpu;
  if (name == "cuda") return engine::EngineChoice::cuda;
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is no engine: use auto, cpu or cuda", name));
}

engine::EngineChoice engine_for_keys(engine::EngineChoice choice, unsigned count) {
  constexpr unsigned keys_for_devices = 64;
  return choice == engine::EngineChoice::automatic && count < keys_for_devices
             ? engine::EngineChoice::cpu
             : choice;
}

engine::EngineChoice engine_for_files(engine::EngineChoice choice, engine::Codec encoder,
                                      std::uint64_t bytes) {
  const bool gains = bytes >= files_for_devices_bytes && encoder != engine::Codec::none &&
                     encoder != engine::Codec::zstd;
  return choice == engine::EngineChoice::automatic && !gains ? engine::EngineChoice::cpu : choice;
}

engine::EngineOptions engine_options(engine::EngineChoice choice,
                                     std::function<void(std::string_view)> warn) {
  return {.choice = choice, .warn = std::move(warn), .cost_file = cost_file()};
}

}  // namespace nacre::tools
