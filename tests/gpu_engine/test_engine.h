// SPDX-License-Identifier: Apache-2.0
// The engine on which tests of payloads run: NACRE_TEST_ENGINE=cpu|cuda, otherwise the one that a
// program gets. So one set of tests covers every backend.
#pragma once

#include <cstdlib>
#include <string_view>

#include "gpu_engine/engine.h"

namespace nacre::engine {

inline EngineChoice test_engine_choice() {
  const char* const name = std::getenv("NACRE_TEST_ENGINE");
  if (name == nullptr) return EngineChoice::automatic;
  return std::string_view(name) == "cuda" ? EngineChoice::cuda : EngineChoice::cpu;
}

}  // namespace nacre::engine
