// SPDX-License-Identifier: Apache-2.0
// Which engine the tests of payloads run on: NACRE_TEST_ENGINE=cpu|cuda, else as a program gets it.
// So that one set of tests judges every backend.
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
