// SPDX-License-Identifier: Apache-2.0
// Decides which backend runs what.
#include "gpu_engine/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <utility>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/cpu/cpu_backend.h"
#include "gpu_engine/plan/device_codecs.h"

namespace nacre::engine {
namespace {

// Below this size, waking a device costs more than it saves for any kind of work.
constexpr std::uint64_t cuda_size_bytes_min = 512u << 10;
// A core takes a millisecond for 64 KiB of bare DES, and a device a tenth of that.
constexpr std::uint64_t cuda_des_size_bytes_min = 16u << 10;

std::uint64_t cuda_size_bytes_min_of(WorkClass work) {
  const bool is_des = work.kind == WorkKind::crypt_des || work.kind == WorkKind::crypt_des_serial;
  return is_des ? cuda_des_size_bytes_min : cuda_size_bytes_min;
}

// Payload sizes that keep the backends busy (docs/PERFORMANCE_CUDA.md).
constexpr std::uint64_t cpu_payload_bytes = 2u << 20;
constexpr std::uint64_t cuda_payload_bytes = 16u << 20;

// The share of a device's backlog for which a new payload waits. A device works on several payloads
// at the same time: one payload of 16 MiB seals lz77 at a third of the speed that many reach
// together. The learned factors contain some of this already. A caller that waits for a device also
// leaves the cores to the threads that make the next payload (both were measured:
// docs/PERFORMANCE.md, "Scaling").
constexpr double cuda_backlog_share = 0.25;

// How many of the last messages of a payload are searched for a record that was opened.
constexpr std::size_t looked_at_for_codec = 256;

// The costs of this machine, from the file or else measured; kept for later engines of the process.
std::optional<CostModel> find_costs(const EngineOptions& options, CpuBackend& cpu,
                                    DeviceBackend& cuda) {
  static Mutex mutex;
  static std::string known_for NACRE_GUARDED_BY(mutex);
  static std::optional<CostModel> known NACRE_GUARDED_BY(mutex);
  const std::string machine = CostModel::machine(cpu.name(), cuda.name());
  const std::string wanted = machine + '\n' + options.cost_file;
  const LockGuard lock(mutex);
  if (known && known_for == wanted) return known;
  known.reset();
  if (!options.cost_file.empty())
    known = CostModel::read(options.cost_file, machine, cpu.thread_count());
  if (!known) {
    known = CostModel::measure(
        cpu, cuda, [&](std::size_t size) { return cuda.allocate(size); }, cpu.thread_count());
    // If a device failed, the cpu finished its work, and the time is not the device's.
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

// The work of messages of one kind. All of them are of one class, except records to be opened:
// these count as the class of most of their bytes.
Work work_of(const Payload& payload, MessageIndexes indexes, Codec record_codec) {
  Work work;
  const Message& first = payload.messages[indexes.front()];
  work.work_class = class_of(payload, first, record_codec);
  std::array<std::uint64_t, work_class_count> bytes = {};
  for (const std::uint32_t index : indexes) {
    const Message& message = payload.messages[index];
    const std::uint64_t size = size_of(message);
    work.bytes += size;
    work.longest = std::max(work.longest, size);
    if (first.operation == Operation::unseal)
      bytes[index_of(class_of(payload, message, record_codec))] += size;
  }
  if (first.operation == Operation::unseal)
    work.work_class =
        work_class_at(static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin()));
  return work;
}

// Whether the payload is too small to be worth waking a device. Stops when the answer is known.
bool is_small(const Payload& payload) {
  std::uint64_t sum = 0;
  for (const Message& message : payload.messages) {
    sum += size_of(message) *
           (cuda_size_bytes_min / cuda_size_bytes_min_of(class_of(payload, message)));
    if (sum >= cuda_size_bytes_min) return false;
  }
  return true;
}

std::uint64_t input_bytes_of(const Payload& payload, MessageIndexes indexes) {
  return std::accumulate(indexes.begin(), indexes.end(), std::uint64_t{0},
                         [&](std::uint64_t sum, std::uint32_t index) {
                           return sum + payload.messages[index].input_size;
                         });
}

// Sorting has looked at each message, so this needs no pass over all of them.
std::uint64_t input_bytes_of(const Payload& payload, const Sorted& sorted) {
  std::uint64_t sum = input_bytes_of(payload, sorted.rest);
  for (const KindGroup& group : sorted.groups)
    sum += group.input_bytes;
  return sum;
}

std::vector<std::uint32_t> all_indexes(const Payload& payload) {
  std::vector<std::uint32_t> all(payload.messages.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Plan all_on_cpu(const Payload& payload, const PlannedPart& part) {
  Plan plan = {.cpu = all_indexes(payload)};
  plan.input_bytes = input_bytes_of(payload, plan.cpu);
  plan.parts[index_of(Side::cpu)] = part;
  return plan;
}

// How many of a kind's first messages were taken, and their bytes.
struct Taken {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};
// Takes as few messages as have at least bytes together, or all.
Taken take_messages(const Payload& payload, MessageIndexes indexes, std::uint64_t bytes) {
  Taken taken;
  while (taken.count < indexes.size() && taken.bytes < bytes)
    taken.bytes += size_of(payload.messages[indexes[taken.count++]]);
  return taken;
}

// Adds up one backend's parts of all kinds in a payload.
class PartSum {
 public:
  void add(const PlannedPart& of_kind) {
    sum_.predicted_ns += of_kind.predicted_ns;
    if (of_kind.predicted_ns <= largest_ns_) return;
    largest_ns_ = of_kind.predicted_ns;
    sum_.cell = of_kind.cell;
    sum_.factor = of_kind.factor;
  }
  // A part that is nearly all of one kind counts as that kind.
  PlannedPart get() const {
    PlannedPart part = sum_;
    if (largest_ns_ < nearly_all * part.predicted_ns) part.cell = no_cost_cell;
    return part;
  }
  double ns() const { return sum_.predicted_ns; }

 private:
  static constexpr double nearly_all = 0.875;

  PlannedPart sum_;
  double largest_ns_ = 0;
};

}  // namespace

std::uint64_t steady_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

Result<Planner> Planner::create(const EngineOptions& options, const DeviceMaker& make_devices,
                                PlannerClock clock) {
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
                 std::move(why_no_cuda), std::move(clock));
}

Planner::Planner(EngineChoice choice, std::unique_ptr<CpuBackend> cpu,
                 std::unique_ptr<DeviceBackend> cuda, std::optional<CostModel> costs,
                 std::string why_no_cuda, PlannerClock clock)
    : choice_(choice),
      costs_(std::move(costs)),
      clock_(std::move(clock)),
      cpu_(std::move(cpu)),
      cuda_(std::move(cuda)),
      why_no_cuda_(std::move(why_no_cuda)) {
  if (cuda_ != nullptr) measured_ = cuda_->stats();
}
// Disturbs all backends for as long as it lives.
class Planner::Disturbance {
 public:
  explicit Disturbance(State& state) : state_(state) {
    const LockGuard lock(state_.mutex);
    for (BusyPeriods& busy : state_.busy)
      busy.begin_disturbance();
  }
  ~Disturbance() {
    const LockGuard lock(state_.mutex);
    for (BusyPeriods& busy : state_.busy)
      busy.end_disturbance();
  }
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

 private:
  State& state_;
};

Planner::Planner(Planner&&) noexcept = default;
Planner::~Planner() = default;

Plan Planner::plan(const Payload& payload, bool waits) {
  // A device runs batches of one kind on several slots at once, so it keeps no order.
  const bool may_use_cuda =
      cuda_ != nullptr && payload.order == MessageOrder::soonest && !(waits && is_engine_thread());
  const double load_factor = may_use_cuda ? cuda_->load_factor() : 0;
  // These payloads of the cpu are not predicted.
  if (load_factor == 0 || (choice_ == EngineChoice::automatic && (!costs_ || is_small(payload))))
    return begin(all_on_cpu(payload, PlannedPart{}));
  if (auto unsorted = deal_out_unsorted(payload, load_factor)) return std::move(*unsorted);
  const std::vector<std::uint32_t> all = all_indexes(payload);
  Sorted sorted = sort_by_kind(payload, all);
  if (choice_ == EngineChoice::cuda) {
    const std::uint64_t input_bytes = input_bytes_of(payload, sorted);
    return {.cpu = std::move(sorted.rest),
            .cuda = std::move(sorted.groups),
            .input_bytes = input_bytes};
  }
  return deal_out(payload, std::move(sorted), load_factor);
}

Plan Planner::begin(Plan plan) {
  if (!costs_) {
    plan.parts = {};
    return plan;
  }
  const std::uint64_t now = clock_();
  const LockGuard lock(state_->mutex);
  for (std::size_t side = 0; side < plan.parts.size(); ++side) {
    if (plan.parts[side]) state_->busy[side].begin(*plan.parts[side], now);
  }
  return plan;
}

void Planner::ended(const std::optional<PlannedPart>& part, Side side) {
  if (!part) return;
  const std::uint64_t now = clock_();
  const LockGuard lock(state_->mutex);
  for (const auto& measured : state_->busy[index_of(side)].end(*part, now))
    state_->learned.learn(measured.cell, measured.factor);
}

PlannedPart Planner::predict(Side side, const Work& work, double bytes) const {
  const CostCell cell = LearnedCosts::cell_of(side, work.work_class, bytes);
  const double factor = state_->learned.factor(cell);
  const auto longest = static_cast<double>(work.longest);
  const double ns = side == Side::cpu ? costs_->cpu_ns(work.work_class, bytes, longest)
                                      : costs_->cuda_ns(work.work_class, bytes, longest);
  return {.predicted_ns = ns * factor, .cell = cell, .factor = factor};
}

std::optional<Plan> Planner::deal_out_unsorted(const Payload& payload, double load_factor) {
  const auto alike = find_alike(payload);
  if (!alike) return std::nullopt;
  Plan plan;
  plan.is_unsorted = true;
  if (choice_ == EngineChoice::cuda) return plan;
  // Times are learned by size, and each kind of record is a class of its own.
  if (!alike->has_one_size || alike->kind.operation == Operation::unseal) return std::nullopt;
  const Work work = {.work_class = class_of(payload, payload.messages.front()),
                     .bytes = alike->size_bytes * payload.messages.size(),
                     .longest = alike->size_longest};
  const auto [cpu_before, cuda_before] = backlogs();
  const std::uint64_t share = whole_if_sooner(
      work, load_factor,
      costs_->cuda_share(work, load_factor, cpu_before, cuda_before, &state_->learned), cpu_before,
      cuda_before);
  if (share > 0 && share < work.bytes) return std::nullopt;
  const Dealt dealt = share_or_trial(work, load_factor, share);
  const Side side = dealt.share == 0 ? Side::cpu : Side::cuda;
  const double load = side == Side::cpu ? 1 : load_factor;
  PlannedPart part = predict(side, work, static_cast<double>(work.bytes) * load);
  if (!dealt.teaches) part.cell = no_cost_cell;
  if (side == Side::cpu) return begin(all_on_cpu(payload, part));
  plan.parts[index_of(side)] = part;
  return begin(std::move(plan));
}

Plan Planner::deal_out(const Payload& payload, Sorted sorted, double load_factor) {
  Plan plan = {.input_bytes = input_bytes_of(payload, sorted)};
  plan.cpu = std::move(sorted.rest);
  const bool has_rest = !plan.cpu.empty();
  const bool is_one_kind = sorted.groups.size() == 1 && !has_rest;
  const auto [cpu_before, cuda_before] = backlogs();
  const Codec record_codec = state_->record_codec.load(std::memory_order_relaxed);
  PartSum cpu;
  PartSum cuda;
  for (KindGroup& group : sorted.groups) {
    const Work work = work_of(payload, group.indexes, record_codec);
    const bool is_undecodable = group.kind.operation == Operation::unseal &&
                                payload.messages[group.indexes.front()].codec == Codec::none &&
                                find_device_codec(record_codec) == nullptr;
    const bool has_choice =
        work.bytes >= cuda_size_bytes_min_of(work.work_class) && !is_undecodable;
    std::uint64_t share = 0;
    // A few messages have no choice of backend and run on one thread: nothing is learned from them.
    bool teaches = has_choice;
    if (has_choice)
      share = costs_->cuda_share(work, load_factor, cpu_before + cpu.ns(), cuda_before + cuda.ns(),
                                 &state_->learned);
    Taken taken = take_messages(payload, group.indexes, share);
    if (has_choice) {
      share = whole_if_sooner(work, load_factor, taken.bytes, cpu_before + cpu.ns(),
                              cuda_before + cuda.ns());
      if (is_one_kind) {
        const Dealt dealt = share_or_trial(work, load_factor, share);
        share = dealt.share;
        teaches = dealt.teaches;
      }
      if (share != taken.bytes) taken = take_messages(payload, group.indexes, share);
    }
    const std::uint64_t on_cuda = taken.bytes;
    const auto end = group.indexes.begin() + static_cast<std::ptrdiff_t>(taken.count);
    plan.cpu.insert(plan.cpu.end(), end, group.indexes.end());
    keep_first(group, taken.count, payload);
    PlannedPart of_cpu = predict(Side::cpu, work, static_cast<double>(work.bytes - on_cuda));
    PlannedPart of_cuda = predict(Side::cuda, work, static_cast<double>(on_cuda) * load_factor);
    if (!teaches) of_cpu.cell = of_cuda.cell = no_cost_cell;
    cpu.add(of_cpu);
    cuda.add(of_cuda);
    if (!group.indexes.empty()) plan.cuda.push_back(std::move(group));
  }
  if (!plan.cpu.empty()) {
    plan.parts[index_of(Side::cpu)] = cpu.get();
    if (has_rest) plan.parts[index_of(Side::cpu)]->cell = no_cost_cell;
  }
  if (!plan.cuda.empty()) plan.parts[index_of(Side::cuda)] = cuda.get();
  return begin(std::move(plan));
}

std::array<double, 2> Planner::backlogs() const {
  const std::uint64_t now = clock_();
  const LockGuard lock(state_->mutex);
  return {state_->busy[index_of(Side::cpu)].backlog_ns(now),
          state_->busy[index_of(Side::cuda)].backlog_ns(now) * cuda_backlog_share};
}

// share is now of whole messages, so it may be larger than the best share. Returns all or nothing
// where one backend alone ends sooner than both with this share.
std::uint64_t Planner::whole_if_sooner(const Work& work, double load_factor, std::uint64_t share,
                                       double cpu_before, double cuda_before) const {
  if (share == 0 || share >= work.bytes) return share;
  const auto ns = [&](std::uint64_t on_cuda) {
    const auto part = static_cast<double>(on_cuda);
    const double cpu =
        predict(Side::cpu, work, static_cast<double>(work.bytes - on_cuda)).predicted_ns;
    const double cuda = predict(Side::cuda, work, part * load_factor).predicted_ns;
    return std::max(cpu > 0 ? cpu_before + cpu : 0, cuda > 0 ? cuda_before + cuda : 0);
  };
  const std::uint64_t whole = ns(0) <= ns(work.bytes) ? 0 : work.bytes;
  return ns(whole) < ns(share) ? whole : share;
}

// work: a whole payload. share: what the devices should get by prediction. The result differs where
// a trial is due.
Planner::Dealt Planner::share_or_trial(const Work& work, double load_factor, std::uint64_t share) {
  const auto whole = static_cast<double>(work.bytes);
  const auto on_cuda = static_cast<double>(share);
  const LearnedCosts& learned = state_->learned;
  const PlannedPart cpu = predict(Side::cpu, work, whole);
  const PlannedPart cuda = predict(Side::cuda, work, whole * load_factor);
  Trials::Choice choice = Trials::Choice::both;
  double chosen_ns = std::max(predict(Side::cpu, work, whole - on_cuda).predicted_ns,
                              predict(Side::cuda, work, on_cuda * load_factor).predicted_ns);
  // When both backends share the work, the one with fewer measurements is tried.
  Side other =
      learned.payload_count(cuda.cell) < learned.payload_count(cpu.cell) ? Side::cuda : Side::cpu;
  if (share == 0 || share == work.bytes) {
    choice = share == 0 ? Trials::Choice::cpu : Trials::Choice::cuda;
    chosen_ns = share == 0 ? cpu.predicted_ns : cuda.predicted_ns;
    other = share == 0 ? Side::cuda : Side::cpu;
  }
  const PlannedPart& tried = other == Side::cuda ? cuda : cpu;
  const double model_ns = tried.predicted_ns / tried.factor;
  // Even with the lowest possible factor the tried backend would not become the better one.
  const bool is_hopeless = model_ns > chosen_ns * LearnedCosts::factor_max;
  const LockGuard lock(state_->mutex);
  // After a device is lost, each of the others has more to do, and earlier trials say nothing.
  if (std::exchange(state_->load_factor, load_factor) != load_factor) state_->trials = Trials();
  const bool other_is_idle = state_->busy[index_of(other)].is_idle();
  const bool all_idle = other_is_idle && state_->busy[1 - index_of(other)].is_idle();
  const Trial trial =
      state_->trials.next({.work = work.work_class,
                           .bytes = whole,
                           .choice = all_idle ? choice : Trials::Choice::none,
                           .chosen_ns = chosen_ns,
                           .tried_ns = tried.predicted_ns,
                           .loss = std::max(0.0, tried.predicted_ns / chosen_ns - 1),
                           .can_try = other_is_idle && !is_hopeless,
                           .known_count = learned.payload_count(tried.cell),
                           .went_well = learned.payload_count(tried.cell) > 0 &&
                                        model_ns * learned.last(tried.cell) < chosen_ns,
                           .got_faster = learned.got_faster(tried.cell)});
  if (trial == Trial::none || trial == Trial::settle) return {share, trial == Trial::none};
  return {other == Side::cuda ? work.bytes : 0, trial == Trial::counted};
}

void Planner::learn(const Payload& payload) {
  if (!costs_) return;
  const std::size_t count = payload.results.size();
  for (std::size_t i = count; i-- > count - std::min(count, looked_at_for_codec);) {
    const MessageResult& result = payload.results[i];
    if (!result.ok || result.codec == Codec::none ||
        payload.messages[i].operation != Operation::unseal)
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
    // While the driver locks pages, which takes milliseconds for some MiB, a device's payloads
    // wait.
    const Disturbance disturbance(*state_);
    // Memory that cannot be locked, or a device that is lost, is no reason to give no memory.
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
  CudaStats cuda = cuda_->stats().since(measured_);
  stats.cuda_message_count = cuda.message_count;
  stats.cuda_input_bytes = cuda.input_bytes;
  stats.cuda_failed_batch_count = cuda.failed_batch_count;
  stats.devices = std::move(cuda.devices);
}

std::string Planner::backend_name() const {
  if (cuda_ != nullptr) return cuda_->name() + "; " + cpu_->name();
  return why_no_cuda_.empty() ? cpu_->name() : cpu_->name() + "; " + why_no_cuda_;
}

}  // namespace nacre::engine
