// SPDX-License-Identifier: Apache-2.0
// The backend's threads: one a slot, all taking batches from one queue, so that devices and copies
// and kernels overlap without a plan. A job is a payload's batches; whoever ends its last one runs
// what is left over on the cpu and ends the job.
//
// Invariants: a slot is used by its thread alone; a job ends once, after all its results; a thread
// whose device is lost ends while another device is left; when none is, all go on taking batches,
// which the cpu then runs.
#include "gpu_engine/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <latch>
#include <mutex>
#include <thread>

#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/ceilings.h"

namespace nacre::engine {
namespace {

using cuda::Batch;
using cuda::check;
using cuda::Slot;

// Of a device's memory, at most this part is for slots.
constexpr std::size_t slot_memory_divisor = 3;

struct Device {
  int number = 0;
  std::string name;
  std::atomic<bool> lost = false;
  std::atomic<bool> warned = false;
  cuda::ScatterGate scatter_gate{cuda::ScatterGate::max()};
};

struct Job {
  Job(Payload& of, std::function<void()> end) : payload(of), done(std::move(end)) {}

  Payload& payload;
  std::function<void()> done;
  bool input_pinned = false;
  bool output_pinned = false;
  std::deque<Batch> waiting;  // under the state's mutex, as are the next two
  unsigned running = 0;
  std::vector<std::uint32_t> for_cpu;
};

}  // namespace

struct CudaBackend::State {
  State(const CudaOptions& options, Backend& finisher)
      : cpu(finisher),
        queued_payload_max(std::max(1u, options.queued_payload_max)),
        warn(options.warn) {}
  ~State();

  void start_job(std::unique_ptr<Job> job);
  void work(Device& device, Slot slot);
  void run(Device& device, Slot& slot, Job& job, const Batch& batch);
  // What a device failed at; says so once a device.
  void note_failure(Device& device, const Error& error);
  void end(std::unique_ptr<Job> job);
  bool any_device_left() const {
    return std::ranges::any_of(devices, [](const auto& device) { return !device->lost; });
  }

  Backend& cpu;
  const unsigned queued_payload_max;
  const std::function<void(std::string_view)> warn;
  std::vector<std::unique_ptr<Device>> devices;

  std::atomic<std::uint64_t> message_count = 0;
  std::atomic<std::uint64_t> input_bytes = 0;
  std::atomic<std::uint64_t> failed_batch_count = 0;

  std::mutex mutex;
  std::condition_variable work_arrived;
  std::condition_variable room_arrived;
  std::deque<Job*> queue;  // jobs with batches waiting
  unsigned job_count = 0;  // not ended yet
  bool stopping = false;
  std::vector<std::thread> threads;
};

namespace {

Result<std::vector<std::unique_ptr<Device>>> find_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return fail(ErrorCode::unsupported, fmt::format("cuda: none ({})", cudaGetErrorString(error)));
  }
  if (count == 0) return fail(ErrorCode::unsupported, "cuda: none (the driver knows no device)");
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties = {};
    NACRE_TRY(check(cudaGetDeviceProperties(&properties, i), "asking for a device's properties"));
    if (properties.canMapHostMemory == 0 || properties.unifiedAddressing == 0) continue;
    auto device = std::make_unique<Device>();
    device->number = i;
    device->name = properties.name;
    devices.push_back(std::move(device));
  }
  if (devices.empty())
    return fail(ErrorCode::unsupported, "cuda: none (no device can reach the host's memory)");
  return devices;
}

Result<std::vector<Slot>> make_slots() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  NACRE_TRY(check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for a device's memory"));
  const std::size_t count = std::clamp<std::size_t>(
      free_bytes / slot_memory_divisor / cuda::slot_size_bytes, 1, cuda::slots_per_device);
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < count; ++i) {
    NACRE_ASSIGN(Slot slot, Slot::create());
    slots.push_back(std::move(slot));
  }
  return slots;
}

}  // namespace

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const CudaOptions& options, Backend& cpu) {
  NACRE_ASSIGN(auto devices, find_devices());
  try {
    auto state = std::make_unique<State>(options, cpu);
    state->devices = std::move(devices);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    for (const std::unique_ptr<Device>& device : state->devices) {
      NACRE_TRY(check(cudaSetDevice(device->number), "choosing a device"));
      NACRE_ASSIGN(std::vector<Slot> slots, make_slots());
      for (Slot& slot : slots) {
        // Signals belong to the program's own threads.
        pthread_sigmask(SIG_SETMASK, &all, &before);
        state->threads.emplace_back(
            [raw = state.get(), on = device.get(), own = std::move(slot)]() mutable {
              raw->work(*on, std::move(own));
            });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_setname_np(state->threads.back().native_handle(), "nacre-cuda");
      }
    }
    return std::unique_ptr<CudaBackend>(new CudaBackend(std::move(state)));
  } catch (const std::exception& error) {
    return fail(ErrorCode::out_of_memory, fmt::format("starting CUDA threads: {}", error.what()));
  }
}

CudaBackend::CudaBackend(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaBackend::~CudaBackend() = default;

CudaBackend::State::~State() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  work_arrived.notify_all();
  for (std::thread& thread : threads)
    thread.join();
}

std::string CudaBackend::name() const {
  std::string name = "cuda";
  for (const std::unique_ptr<Device>& device : state_->devices)
    name += fmt::format(", {} {}", device->name, device->number);
  return name;
}

bool CudaBackend::takes(const Payload& payload, const Message& message) {
  return cuda::find_kind(payload, message).has_value();
}

Result<Arena> CudaBackend::allocate(std::size_t size_bytes) {
  return cuda::allocate_pinned_arena(size_bytes);
}

CudaStats CudaBackend::stats() const {
  CudaStats stats = {.message_count = state_->message_count,
                     .input_bytes = state_->input_bytes,
                     .failed_batch_count = state_->failed_batch_count,
                     .device_count = static_cast<unsigned>(state_->devices.size())};
  for (const std::unique_ptr<Device>& device : state_->devices)
    stats.lost_device_count += device->lost;
  return stats;
}

Result<double> CudaBackend::measure_resident(Payload& payload, unsigned repetitions) {
  Batch batch;
  std::uint64_t weight = 0;
  for (std::uint32_t i = 0; i < payload.messages.size(); ++i) {
    const auto kind = cuda::find_kind(payload, payload.messages[i]);
    if (!kind || (i > 0 && *kind != batch.kind))
      return fail(ErrorCode::unsupported, "the payload is no batch of a device");
    batch.kind = *kind;
    batch.indexes.push_back(i);
    weight += cuda::batch_weight(payload.messages[i]);
  }
  NACRE_TRY(check(cudaSetDevice(state_->devices.front()->number), "choosing a device"));
  NACRE_ASSIGN(Slot slot, Slot::create(weight / cuda::batch_size_bytes + 1));
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
  std::latch ended(1);
  try {
    submit(payload, {indexes.begin(), indexes.end()}, [&] { ended.count_down(); });
  } catch (const std::bad_alloc&) {
    state_->cpu.run(payload, indexes);
    return;
  }
  ended.wait();
}

void CudaBackend::submit(Payload& payload, std::vector<std::uint32_t> indexes,
                         std::function<void()> done) {
  try {
    auto job = std::make_unique<Job>(payload, std::move(done));
    try {
      cuda::Cut cut = cuda::cut_into_batches(payload, indexes);
      job->waiting.assign(std::make_move_iterator(cut.batches.begin()),
                          std::make_move_iterator(cut.batches.end()));
      job->for_cpu = std::move(cut.rest);
    } catch (const std::bad_alloc&) {
      job->waiting.clear();
      job->for_cpu = std::move(indexes);
    }
    job->input_pinned = cuda::is_pinned(payload.input, payload.input_size);
    job->output_pinned = cuda::is_pinned(payload.output, payload.output_size);
    state_->start_job(std::move(job));
  } catch (const std::bad_alloc&) {
    state_->cpu.submit(payload, std::move(indexes), std::move(done));
  }
}

void CudaBackend::State::start_job(std::unique_ptr<Job> job) {
  if (job->waiting.empty()) {
    end(std::move(job));
    return;
  }
  const std::size_t batch_count = job->waiting.size();
  {
    std::unique_lock lock(mutex);
    if (!is_engine_thread())
      room_arrived.wait(lock, [&] { return job_count < queued_payload_max; });
    try {
      queue.push_back(job.get());
    } catch (const std::bad_alloc&) {
      lock.unlock();
      for (const Batch& batch : job->waiting)
        cpu.run(job->payload, batch.indexes);
      end(std::move(job));
      return;
    }
    // From here on the job belongs to whoever ends its last batch.
    static_cast<void>(job.release());
    ++job_count;
  }
  for (std::size_t i = 0; i < std::min(batch_count, threads.size()); ++i)
    work_arrived.notify_one();
}

void CudaBackend::State::work(Device& device, Slot slot) {
  mark_engine_thread();
  static_cast<void>(cudaSetDevice(device.number));
  std::unique_lock lock(mutex);
  for (;;) {
    work_arrived.wait(lock, [&] { return stopping || !queue.empty(); });
    if (queue.empty()) return;
    if (device.lost && any_device_left()) {
      // Another device's thread may have missed its call.
      work_arrived.notify_one();
      return;
    }
    Job* const job = queue.front();
    const Batch batch = std::move(job->waiting.front());
    job->waiting.pop_front();
    ++job->running;
    if (job->waiting.empty()) queue.pop_front();
    lock.unlock();
    run(device, slot, *job, batch);
    lock.lock();
    if (--job->running > 0 || !job->waiting.empty()) continue;
    --job_count;
    room_arrived.notify_one();
    lock.unlock();
    end(std::unique_ptr<Job>(job));
    lock.lock();
  }
}

void CudaBackend::State::run(Device& device, Slot& slot, Job& job, const Batch& batch) {
  std::vector<std::uint32_t> refused;
  bool good = false;
  try {
    if (!device.lost) {
      const auto outcome = cuda::run_batch({.slot = slot,
                                            .scatter_gate = device.scatter_gate,
                                            .payload = job.payload,
                                            .batch = batch,
                                            .input_pinned = job.input_pinned,
                                            .output_pinned = job.output_pinned,
                                            .refused = refused});
      good = outcome.has_value();
      if (!good) note_failure(device, outcome.error());
    }
  } catch (const std::bad_alloc&) {
    // What was launched must have ended before its memory serves another batch.
    static_cast<void>(slot.finish());
  }
  if (good) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t index : batch.indexes)
      bytes += job.payload.messages[index].input_size;
    message_count.fetch_add(batch.indexes.size() - refused.size(), std::memory_order_relaxed);
    input_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (refused.empty()) return;
  } else {
    failed_batch_count.fetch_add(1, std::memory_order_relaxed);
  }
  cpu.run(job.payload, good ? MessageIndexes(refused) : MessageIndexes(batch.indexes));
}

void CudaBackend::State::note_failure(Device& device, const Error& error) {
  // An error that comes again at once is the device's own end: a lost context answers nothing.
  const bool answers = check(cudaDeviceSynchronize(), "asking a device").has_value();
  if (!answers) device.lost = true;
  if (warn == nullptr || device.warned.exchange(true)) return;
  try {
    warn(fmt::format("{} {}: {}; the cpu does its work{}", device.name, device.number,
                     error.message, answers ? "" : " from now on"));
  } catch (...) {
  }
}

void CudaBackend::State::end(std::unique_ptr<Job> job) {
  // What no device takes runs here, by the cpu's threads and this one.
  if (!job->for_cpu.empty()) cpu.run(job->payload, job->for_cpu);
  try {
    job->done();
  } catch (...) {
  }
}

}  // namespace nacre::engine
