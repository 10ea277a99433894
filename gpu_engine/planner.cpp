// SPDX-License-Identifier: Apache-2.0
// Which backend runs what; see the header.
#include "gpu_engine/planner.h"

#include <numeric>

#include "gpu_engine/cpu/cpu_backend.h"
#include "gpu_engine/cuda/cuda_backend.h"

namespace nacre::engine {

Result<Planner> Planner::create(const EngineOptions& options) {
  NACRE_ASSIGN(std::unique_ptr<CpuBackend> cpu,
               CpuBackend::create(options.thread_count, options.queued_payload_max));
  std::unique_ptr<CudaBackend> cuda;
  if (options.choice != EngineChoice::cpu) {
    auto made = CudaBackend::create(
        {.queued_payload_max = options.queued_payload_max, .warn = options.warn}, *cpu);
    if (made) {
      cuda = std::move(*made);
    } else if (options.choice == EngineChoice::cuda) {
      return add_context(std::move(made).error(), "the engine cuda cannot run here");
    }
  }
  return Planner(options.choice, std::move(cpu), std::move(cuda));
}

Planner::Planner(EngineChoice choice, std::unique_ptr<CpuBackend> cpu,
                 std::unique_ptr<CudaBackend> cuda)
    : choice_(choice), cpu_(std::move(cpu)), cuda_(std::move(cuda)) {}
Planner::Planner(Planner&&) noexcept = default;
Planner::~Planner() = default;

Plan Planner::plan(const Payload& payload) const {
  Plan plan;
  if (cuda_ == nullptr) {
    plan.cpu.resize(payload.messages.size());
    std::iota(plan.cpu.begin(), plan.cpu.end(), 0);
    return plan;
  }
  for (std::uint32_t i = 0; i < payload.messages.size(); ++i)
    (CudaBackend::takes(payload, payload.messages[i]) ? plan.cuda : plan.cpu).push_back(i);
  return plan;
}

Backend& Planner::cpu() const {
  return *cpu_;
}

Backend* Planner::cuda() const {
  return cuda_.get();
}

Result<Arena> Planner::allocate(std::size_t size_bytes) const {
  return cuda_ != nullptr ? cuda_->allocate(size_bytes) : allocate_host_arena(size_bytes);
}

void Planner::add_stats(EngineStats& stats) const {
  if (cuda_ == nullptr) return;
  const CudaStats cuda = cuda_->stats();
  stats.cuda_message_count = cuda.message_count;
  stats.cuda_input_bytes = cuda.input_bytes;
  stats.cuda_failed_batch_count = cuda.failed_batch_count;
}

std::string Planner::backend_name() const {
  return cuda_ != nullptr ? cuda_->name() + "; " + cpu_->name() : cpu_->name();
}

}  // namespace nacre::engine
