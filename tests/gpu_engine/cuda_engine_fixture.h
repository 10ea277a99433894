// SPDX-License-Identifier: Apache-2.0
// An engine with devices, and one without for comparison.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "gpu_engine/engine.h"
#include "tests/gpu_engine/payload_mixtures.h"

namespace nacre::engine {

class CudaEngine : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Engine::create({.choice = EngineChoice::cuda});
    if (made) {
      cuda_ = std::move(*made);
      cpu_ = Engine::create({.choice = EngineChoice::cpu}).value();
      return;
    }
    const char* const required = std::getenv("NACRE_REQUIRE_GPU");
    if (required != nullptr && *required == '1') FAIL() << made.error().message;
    GTEST_SKIP() << made.error().message;
  }

  std::unique_ptr<Engine> cuda_;
  std::unique_ptr<Engine> cpu_;
  TestRandom random_;
};

}  // namespace nacre::engine
