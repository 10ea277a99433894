// SPDX-License-Identifier: Apache-2.0
// Owns the backends and says which of them runs which messages of a payload.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/engine.h"

namespace nacre::engine {

class CpuBackend;
class CudaBackend;

// The messages of a payload, each in one of the two.
struct Plan {
  std::vector<std::uint32_t> cpu;
  std::vector<std::uint32_t> cuda;
};

class Planner {
 public:
  // Makes the backends that the choice allows. unsupported when it names one that this build or
  // this machine does not have.
  static Result<Planner> create(const EngineOptions& options);
  Planner(Planner&&) noexcept;
  ~Planner();

  // Thread-safe. Throws std::bad_alloc.
  Plan plan(const Payload& payload) const;

  Backend& cpu() const;
  Backend* cuda() const;  // nullptr where there is none
  Result<Arena> allocate(std::size_t size_bytes) const;
  void add_stats(EngineStats& stats) const;
  std::string backend_name() const;

 private:
  Planner(EngineChoice choice, std::unique_ptr<CpuBackend> cpu, std::unique_ptr<CudaBackend> cuda);

  EngineChoice choice_;
  std::unique_ptr<CpuBackend> cpu_;
  std::unique_ptr<CudaBackend> cuda_;  // goes first: it finishes what fails on the cpu
};

}  // namespace nacre::engine
