// SPDX-License-Identifier: Apache-2.0
// --engine auto|cpu|cuda, for every command that seals or opens much.
#pragma once

#include <string_view>

#include "gpu_engine/engine.h"

namespace nacre::tools {

// invalid_argument for another name.
Result<engine::EngineChoice> parse_engine(std::string_view name);

// What the engine is made with. Its measured costs are kept in $XDG_CACHE_HOME/nacre, else in
// ~/.cache/nacre. warn is called where a device fails.
engine::EngineOptions engine_options(engine::EngineChoice choice,
                                     std::function<void(std::string_view)> warn);

}  // namespace nacre::tools
