// SPDX-License-Identifier: Apache-2.0
// Owns the backends and says which of them runs a payload. The engine above it knows none of them.
#pragma once

#include <memory>
#include <string>

#include "gpu_engine/engine.h"

namespace nacre::engine {

class Planner {
 public:
  // Makes the backends that the choice allows. unsupported when it names one that this build does
  // not have.
  static Result<Planner> create(const EngineOptions& options);

  // The backend for this payload. Thread-safe.
  Backend& choose(const Payload& payload) const;
  std::string backend_name() const;

 private:
  explicit Planner(std::unique_ptr<Backend> cpu) : cpu_(std::move(cpu)) {}

  std::unique_ptr<Backend> cpu_;
};

}  // namespace nacre::engine
