// SPDX-License-Identifier: Apache-2.0
// --engine auto|cpu|cuda, for every command that seals or opens much data.
#pragma once

#include <string_view>

#include "gpu_engine/engine.h"

namespace nacre::tools {

// Error: invalid_argument for another name.
Result<engine::EngineChoice> parse_engine(std::string_view name);

// The options of the engine. Its measured costs are kept in $XDG_CACHE_HOME/nacre, or without that
// in ~/.cache/nacre. warn is called if a device fails.
engine::EngineOptions engine_options(engine::EngineChoice choice,
                                     std::function<void(std::string_view)> warn);

// The engine that makes this many RSA keys. automatic means the cpu if they are few, because these
// are ready before a device has started.
engine::EngineChoice engine_for_keys(engine::EngineChoice choice, unsigned count);
// The engine for files that are read once. Starting a device takes half a second, and it saves
// little time if the files' disk is the slowest part. So automatic means the cpu, unless 2 GiB or
// more are to be compressed with a codec that devices have.
inline constexpr std::uint64_t files_for_devices_bytes = 2ull << 30;
engine::EngineChoice engine_for_files(engine::EngineChoice choice, engine::Codec encoder,
                                      std::uint64_t bytes);

}  // namespace nacre::tools
