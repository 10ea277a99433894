// SPDX-License-Identifier: Apache-2.0
// Which backend runs what; see the header.
#include "gpu_engine/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cpu/cpu_backend.h"
#include "gpu_engine/cuda/device_codecs.h"

namespace nacre::engine {
namespace {

// Below this, waking a device costs more than any of its work saves.
constexpr std::uint64_t cuda_size_bytes_min = 512u << 10;

// What keeps the backends busy: a device has few pieces at a time below 16 MiB
// (docs/PERFORMANCE_CUDA.md).
constexpr std::uint64_t cpu_payload_bytes = 2u << 20;
constexpr std::uint64_t cuda_payload_bytes = 16u << 20;

// The costs of this machine: from the file, else measured, once a process.
std::optional<CostModel> find_costs(const EngineOptions& options, Backend& cpu,
                                    DeviceBackend& cuda) {
  static std::mutex mutex;
  static std::string known_for;
  static std::optional<CostModel> known;
  const std::string machine = CostModel::machine(cpu.name(), cuda.name());
  const std::string wanted = machine + '\n' + options.cost_file;
  const std::lock_guard lock(mutex);
  if (known && known_for == wanted) return known;
  known.reset();
  if (!options.cost_file.empty()) known = CostModel::read(options.cost_file, machine);
  if (!known) {
    known = CostModel::measure(cpu, cuda, [&](std::size_t size) { return cuda.allocate(size); });
    // The cpu did what a device failed at: that is not what a device costs.
    if (cuda.stats().failed_batch_count > 0) known.reset();
    if (known && !options.cost_file.empty()) known->write(options.cost_file, machine);
  }
  known_for = wanted;
  if (!known && options.warn != nullptr)
    options.warn(
        "what this machine's devices cost could not be measured: the engine auto uses the cpu "
        "alone");
  return known;
}

// Messages of one kind. They are of one class, but for records: those count as what most of their
// bytes are.
Work work_of(const Payload& payload, MessageIndexes indexes, Codec record_codec) {
  Work work;
  std::array<std::uint64_t, work_class_count> bytes = {};
  for (const std::uint32_t index : indexes) {
    const Message& message = payload.messages[index];
    const std::uint64_t size = size_of(message);
    work.bytes += size;
    work.longest = std::max(work.longest, size);
    bytes[index_of(class_of(payload, message, record_codec))] += size;
  }
  work.work_class =
      work_class_at(static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin()));
  return work;
}

}  // namespace

Result<Planner> Planner::create(const EngineOptions& options, const DeviceMaker& make_devices) {
  NACRE_ASSIGN(std::unique_ptr<CpuBackend> cpu,
               CpuBackend::create(options.thread_count, options.queued_payload_max));
  std::unique_ptr<DeviceBackend> cuda;
  std::string why_no_cuda;
  if (options.choice != EngineChoice::cpu) {
    auto made = make_devices(
        {.queued_payload_max = options.queued_payload_max, .warn = options.warn}, *cpu);
    if (made) {
      cuda = std::move(*made);
    } else if (options.choice == EngineChoice::cuda) {
      return add_context(std::move(made).error(),
                         "the engine cuda cannot run here; auto and cpu can");
    } else {
      why_no_cuda = made.error().message;
    }
  }
  std::optional<CostModel> costs;
  if (cuda != nullptr && options.choice == EngineChoice::automatic)
    costs = find_costs(options, *cpu, *cuda);
  return Planner(options.choice, std::move(cpu), std::move(cuda), std::move(costs),
                 std::move(why_no_cuda));
}

Planner::Planner(EngineChoice choice, std::unique_ptr<CpuBackend> cpu,
                 std::unique_ptr<DeviceBackend> cuda, std::optional<CostModel> costs,
                 std::string why_no_cuda)
    : choice_(choice),
      costs_(std::move(costs)),
      cpu_(std::move(cpu)),
      cuda_(std::move(cuda)),
      why_no_cuda_(std::move(why_no_cuda)) {
  if (cuda_ != nullptr) measured_ = cuda_->stats();
}
Planner::Planner(Planner&&) noexcept = default;
Planner::~Planner() = default;

Plan Planner::plan(const Payload& payload, bool waits) {
  std::vector<std::uint32_t> all(payload.messages.size());
  std::iota(all.begin(), all.end(), 0);
  // A device runs batches of one kind on several slots at once: it keeps no order.
  const bool may_use_cuda =
      cuda_ != nullptr && payload.order == MessageOrder::soonest && !(waits && is_engine_thread());
  const double load_factor = may_use_cuda ? cuda_->load_factor() : 0;
  if (load_factor == 0 || (choice_ == EngineChoice::automatic && !costs_))
    return {.cpu = std::move(all)};
  cuda::Sorted sorted = cuda::sort_by_kind(payload, all);
  if (choice_ == EngineChoice::cuda)
    return {.cpu = std::move(sorted.rest), .cuda = std::move(sorted.groups)};
  return deal_out(payload, std::move(sorted), load_factor);
}

Plan Planner::deal_out(const Payload& payload, cuda::Sorted sorted, double load_factor) {
  Plan plan = {.cpu = std::move(sorted.rest)};
  const auto cpu_before =
      static_cast<double>(state_->cpu_backlog_ns.load(std::memory_order_relaxed));
  const auto cuda_before =
      static_cast<double>(state_->cuda_backlog_ns.load(std::memory_order_relaxed));
  const Codec record_codec = state_->record_codec.load(std::memory_order_relaxed);
  double cpu_ns = 0;
  double cuda_ns = 0;
  for (cuda::KindGroup& group : sorted.groups) {
    const Work work = work_of(payload, group.indexes, record_codec);
    const bool is_undecodable = group.kind.operation == Operation::unseal &&
                                payload.messages[group.indexes.front()].codec == Codec::none &&
                                cuda::find_device_codec(record_codec) == nullptr;
    const std::uint64_t share =
        work.bytes < cuda_size_bytes_min || is_undecodable
            ? 0
            : costs_->cuda_share(work, load_factor, cpu_before + cpu_ns, cuda_before + cuda_ns);
    std::uint64_t on_cuda = 0;
    auto end = group.indexes.begin();
    for (; end != group.indexes.end() && on_cuda < share; ++end)
      on_cuda += size_of(payload.messages[*end]);
    plan.cpu.insert(plan.cpu.end(), end, group.indexes.end());
    group.indexes.erase(end, group.indexes.end());
    cpu_ns += costs_->cpu_ns(work.work_class, static_cast<double>(work.bytes - on_cuda));
    cuda_ns += costs_->cuda_ns(work.work_class, static_cast<double>(on_cuda) * load_factor,
                               static_cast<double>(work.longest));
    if (!group.indexes.empty()) plan.cuda.push_back(std::move(group));
  }
  plan.cpu_ns = static_cast<std::uint64_t>(cpu_ns);
  plan.cuda_ns = static_cast<std::uint64_t>(cuda_ns);
  state_->cpu_backlog_ns.fetch_add(plan.cpu_ns, std::memory_order_relaxed);
  state_->cuda_backlog_ns.fetch_add(plan.cuda_ns, std::memory_order_relaxed);
  return plan;
}

void Planner::ended(std::uint64_t cpu_ns, std::uint64_t cuda_ns) {
  state_->cpu_backlog_ns.fetch_sub(cpu_ns, std::memory_order_relaxed);
  state_->cuda_backlog_ns.fetch_sub(cuda_ns, std::memory_order_relaxed);
}

void Planner::learn(const Payload& payload) {
  if (!costs_) return;
  for (std::size_t i = payload.results.size(); i-- > 0;) {
    const MessageResult& result = payload.results[i];
    if (payload.messages[i].operation != Operation::unseal || !result.ok ||
        result.codec == Codec::none)
      continue;
    state_->record_codec.store(result.codec, std::memory_order_relaxed);
    return;
  }
}

Backend& Planner::cpu() const {
  return *cpu_;
}

DeviceBackend* Planner::cuda() const {
  return cuda_.get();
}

Result<Arena> Planner::allocate(std::size_t size_bytes) const {
  if (cuda_ != nullptr) {
    // Memory that cannot be locked, or a device that is gone, is no reason to have none.
    if (auto pinned = cuda_->allocate(size_bytes)) return pinned;
  }
  return allocate_host_arena(size_bytes);
}

std::uint64_t Planner::payload_size_bytes() const {
  const bool devices = cuda_ != nullptr &&
                       (choice_ == EngineChoice::cuda ||
                        (costs_ && costs_->cuda_share({.work_class = {WorkKind::seal, Codec::lz77},
                                                       .bytes = cuda_payload_bytes,
                                                       .longest = chunk_size_bytes_default},
                                                      1, 0, 0) > 0));
  return devices ? cuda_payload_bytes : cpu_payload_bytes;
}

Result<double> Planner::measure_resident(Payload& payload, unsigned repetitions) const {
  if (cuda_ == nullptr) return fail(ErrorCode::unsupported, "cuda: none");
  return cuda_->measure_resident(payload, repetitions);
}

Result<DeviceCeilings> Planner::measure_ceilings() const {
  if (cuda_ == nullptr) return fail(ErrorCode::unsupported, "cuda: none");
  return cuda_->measure_ceilings();
}

void Planner::add_stats(EngineStats& stats) const {
  if (cuda_ == nullptr) return;
  const CudaStats cuda = cuda_->stats();
  stats.cuda_message_count = cuda.message_count - measured_.message_count;
  stats.cuda_input_bytes = cuda.input_bytes - measured_.input_bytes;
  stats.cuda_failed_batch_count = cuda.failed_batch_count;
}

std::string Planner::backend_name() const {
  if (cuda_ != nullptr) return cuda_->name() + "; " + cpu_->name();
  return why_no_cuda_.empty() ? cpu_->name() : cpu_->name() + "; " + why_no_cuda_;
}

}  // namespace nacre::engine
