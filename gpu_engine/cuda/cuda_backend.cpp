// SPDX-License-Identifier: Apache-2.0
// The backend on all CUDA devices of the machine, and how payloads become jobs of its threads
// (backend_threads.cpp).
#include "gpu_engine/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <numeric>

#include "gpu_engine/base/blocked_signals.h"
#include "gpu_engine/base/limits.h"
#include "gpu_engine/cuda/backend_state.h"
#include "gpu_engine/cuda/ceilings.h"

namespace nacre::engine {

using cuda::Batch;
using cuda::check;
using cuda::Device;
using cuda::Job;
using cuda::Slot;

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const CudaOptions& options, Backend& cpu) {
  NACRE_ASSIGN(const int device_count, cuda::count_devices());
  try {
    auto state = std::make_unique<State>(options, cpu);
    // If one device cannot be used, the others are used all the same.
    Error last = {ErrorCode::unsupported};
    for (int number = 0; number < device_count; ++number) {
      if (const auto added = state->add_device(number); !added) {
        last = added.error();
        state->say(fmt::format("CUDA device {} is not used: {}", number, last.message));
      }
    }
    if (state->devices.empty())
      return fail(last.code, fmt::format("cuda: none ({})", last.message));
    // If there is no memory for the callers' slot, callers wait for the backend's threads instead.
    if (check(cudaSetDevice(state->devices.front()->number), "choosing a device")) {
      const LockGuard lock(state->caller_mutex);
      if (auto slot = Slot::create()) state->caller_slot = std::move(*slot);
    }
    return std::unique_ptr<CudaBackend>(new CudaBackend(std::move(state)));
  } catch (const std::exception& error) {
    return fail(ErrorCode::out_of_memory,
                fmt::format("cuda: none (starting its threads: {})", error.what()));
  }
}

Result<> CudaBackend::State::add_device(int number) {
  NACRE_ASSIGN(std::unique_ptr<Device> device, cuda::open_device(number));
  NACRE_ASSIGN(std::vector<Slot> slots, cuda::make_slots());
  Device& added = *device;
  added.slot_count = slots.size();
  slot_count += slots.size();
  {
    // Threads of devices that are already open may look at the list.
    const LockGuard lock(mutex);
    devices.push_back(std::move(device));
  }
  const BlockedSignals blocked;
  for (Slot& slot : slots) {
    {
      const LockGuard lock(mutex);
      ++thread_count;
    }
    threads.emplace_back(
        [this, &added, own = std::move(slot)]() mutable { work(added, std::move(own)); });
    pthread_setname_np(threads.back().native_handle(), "nacre-cuda");
  }
  return {};
}

CudaBackend::CudaBackend(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaBackend::~CudaBackend() = default;

CudaBackend::State::~State() {
  {
    const LockGuard lock(mutex);
    stopping = true;
  }
  work_arrived.notify_all();
  for (std::thread& thread : threads)
    thread.join();
  // The callers' slot is wiped by its destructor, which needs its device to be current.
  if (caller_slot) static_cast<void>(cudaSetDevice(devices.front()->number));
}

double CudaBackend::load_factor() const {
  const std::size_t left = state_->slots_left();
  return left == 0 ? 0 : static_cast<double>(state_->slot_count) / static_cast<double>(left);
}

void CudaBackend::forget_keys() {
  state_->forget_keys();
}

std::string CudaBackend::name() const {
  std::string name = "cuda";
  for (const std::unique_ptr<Device>& device : state_->devices)
    name += fmt::format(", {} {}", device->name, device->number);
  return name;
}

Result<Arena> CudaBackend::allocate(std::size_t size_bytes) {
  return cuda::allocate_pinned_arena(size_bytes);
}

CudaStats CudaBackend::stats() const {
  CudaStats stats = {.message_count = state_->message_count,
                     .input_bytes = state_->input_bytes,
                     .failed_batch_count = state_->failed_batch_count};
  for (const std::unique_ptr<Device>& device : state_->devices) {
    stats.devices.push_back({.name = device->name,
                             .number = device->number,
                             .is_lost = device->lost,
                             .busy_ns = device->busy.nanoseconds(),
                             .input_bytes = device->input_bytes});
  }
  return stats;
}

Result<double> CudaBackend::measure_resident(Payload& payload, unsigned repetitions) {
  std::vector<std::uint32_t> all(payload.messages.size());
  std::iota(all.begin(), all.end(), 0);
  // A slot of the necessary size is made below, so a message may be longer than a batch.
  const Sorted sorted = sort_by_kind(payload, all, 2 * message_size_bytes_max);
  if (sorted.groups.size() != 1 || !sorted.rest.empty())
    return fail(ErrorCode::unsupported, "a device cannot run the payload as one batch");
  const KindGroup& group = sorted.groups.front();
  const Batch batch = {.kind = group.kind, .indexes = group.indexes};
  std::uint64_t weight = 0;
  for (const Message& message : payload.messages)
    weight += batch_weight(message);
  NACRE_TRY(check(cudaSetDevice(state_->devices.front()->number), "choosing a device"));
  NACRE_ASSIGN(Slot slot, Slot::create(weight / batch_size_bytes + 1));
  payload.results.assign(payload.messages.size(), MessageResult{});
  std::vector<std::uint32_t> refused;
  double seconds = 0;
  NACRE_TRY(cuda::run_batch({.slot = slot,
                             .scatter_gate = state_->devices.front()->scatter_gate,
                             .payload = payload,
                             .batch = batch,
                             .input_pinned = cuda::is_pinned(payload.input, payload.input_size),
                             .output_pinned = cuda::is_pinned(payload.output, payload.output_size),
                             .refused = refused,
                             .repetitions = repetitions,
                             .device_seconds = &seconds}));
  if (!refused.empty()) return fail(ErrorCode::invalid_argument, "a message is not good");
  return seconds;
}

Result<DeviceCeilings> CudaBackend::measure_ceilings() {
  NACRE_TRY(check(cudaSetDevice(state_->devices.front()->number), "choosing a device"));
  return cuda::measure_ceilings();
}

void CudaBackend::run(Payload& payload, MessageIndexes indexes) {
  Sorted sorted;
  try {
    sorted = sort_by_kind(payload, indexes);
  } catch (const std::bad_alloc&) {
    state_->cpu.run(payload, indexes);
    return;
  }
  run_sorted(payload, std::move(sorted));
}

void CudaBackend::run_sorted(Payload& payload, Sorted sorted) {
  std::unique_ptr<Job> job = state_->make_job(payload, std::move(sorted));
  if (job == nullptr) return;
  std::latch ended(1);
  job->done = [&] { ended.count_down(); };
  if (job->part_count() != 1 || !state_->run_here(job)) state_->start_job(std::move(job));
  ended.wait();
}

MessageCounts CudaBackend::run_unsorted(Payload& payload) {
  std::unique_ptr<Job> job = state_->make_unsorted_job(payload);
  if (job == nullptr) return cuda::run_on(state_->cpu, payload);
  std::latch ended(1);
  MessageCounts counts;
  job->counted = [&](const MessageCounts& of_all) {
    counts = of_all;
    ended.count_down();
  };
  if (!state_->run_here(job)) state_->start_job(std::move(job));
  // The parts that other threads are still running are short, so the wait first polls.
  const auto patient_until = std::chrono::steady_clock::now() + cuda::awake_wait_max;
  while (!ended.try_wait() && std::chrono::steady_clock::now() < patient_until)
    std::this_thread::yield();
  ended.wait();
  return counts;
}

void CudaBackend::submit_unsorted(Payload& payload,
                                  std::function<void(const MessageCounts&)> done) {
  std::unique_ptr<Job> job = state_->make_unsorted_job(payload);
  if (job == nullptr) {
    done(cuda::run_on(state_->cpu, payload));
    return;
  }
  job->counted = std::move(done);
  state_->start_job(std::move(job));
}

void CudaBackend::submit(Payload& payload, std::vector<std::uint32_t> indexes,
                         std::function<void()> done) {
  Sorted sorted;
  try {
    sorted = sort_by_kind(payload, indexes);
  } catch (const std::bad_alloc&) {
    state_->cpu.submit(payload, std::move(indexes), std::move(done));
    return;
  }
  submit_sorted(payload, std::move(sorted), std::move(done));
}

void CudaBackend::submit_sorted(Payload& payload, Sorted sorted, std::function<void()> done) {
  std::unique_ptr<Job> job = state_->make_job(payload, std::move(sorted));
  if (job == nullptr) {
    done();
    return;
  }
  job->done = std::move(done);
  state_->start_job(std::move(job));
}

std::unique_ptr<Job> CudaBackend::State::make_job(Payload& payload, Sorted sorted) {
  std::unique_ptr<Job> job;
  try {
    job = std::make_unique<Job>(payload);
    job->batches = cuda::cut_into_batches(payload, sorted.groups, slots_left());
  } catch (const std::bad_alloc&) {
    for (const KindGroup& group : sorted.groups)
      cpu.run(payload, group.indexes);
    cpu.run(payload, sorted.rest);
    return nullptr;
  }
  job->for_cpu = std::move(sorted.rest);
  return job;
}

std::unique_ptr<Job> CudaBackend::State::make_unsorted_job(Payload& payload) const {
  try {
    auto job = std::make_unique<Job>(payload);
    const auto alike = find_alike(payload);
    job->stretches = cuda::cut_into_stretches(payload.messages.size(),
                                              alike ? alike->size_bytes : 0, slots_left());
    return job;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace nacre::engine
