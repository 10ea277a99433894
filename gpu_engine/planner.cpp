// SPDX-License-Identifier: Apache-2.0
// This build has one backend, so the choice is made when the planner is.
#include "gpu_engine/planner.h"

#include "gpu_engine/cpu/cpu_backend.h"

namespace nacre::engine {

Result<Planner> Planner::create(const EngineOptions& options) {
  if (options.choice == EngineChoice::cuda)
    return fail(ErrorCode::unsupported,
                "this build has no CUDA backend; choose the engine auto or cpu");
  NACRE_ASSIGN(std::unique_ptr<Backend> cpu,
               CpuBackend::create(options.thread_count, options.queued_payload_max));
  return Planner(std::move(cpu));
}

Backend& Planner::choose(const Payload& /*payload*/) const {
  return *cpu_;
}

std::string Planner::backend_name() const {
  return cpu_->name();
}

}  // namespace nacre::engine
