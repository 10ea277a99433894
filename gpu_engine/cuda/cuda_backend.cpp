// SPDX-License-Identifier: Apache-2.0
// The backend's threads: one a slot, all taking batches from one queue, so that devices and copies
// and kernels overlap without a plan. A job is a payload's batches; whoever ends its last one runs
// what is left over on the cpu and ends the job. One more slot is for a caller that waits for a job
// of one batch.
//
// Invariants: a slot is used by its thread alone, the callers' under its mutex; a job ends once,
// after all its results; a thread whose device is lost ends while another device is left; when none
// is, all go on taking batches, which the cpu then runs.
#include "gpu_engine/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "gpu_engine/base/blocked_signals.h"
#include "gpu_engine/base/limits.h"
#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/ceilings.h"
#include "gpu_engine/cuda/device.h"

namespace nacre::engine {
namespace {

using cuda::Batch;
using cuda::check;
using cuda::Device;
using cuda::Slot;

struct Job {
  explicit Job(Payload& of) : payload(of) {}

  Payload& payload;
  std::function<void()> done;
  bool input_pinned = false;
  bool output_pinned = false;
  std::vector<Batch> batches;
  std::vector<std::uint32_t> for_cpu;  // what no device takes; runs when the batches have ended
  // Under the state's mutex.
  std::size_t next_batch = 0;
  unsigned running = 0;
};

bool overlap(const Byte* a, std::uint64_t a_size, const Byte* b, std::uint64_t b_size) {
  return a < b + b_size && b < a + a_size;
}

}  // namespace

struct CudaBackend::State {
  State(const CudaOptions& options, Backend& finisher)
      : cpu(finisher),
        queued_payload_max(std::max(1u, options.queued_payload_max)),
        warn(options.warn) {}
  ~State();

  // Opens it and starts its threads.
  Result<> add_device(int number);
  // Nothing without memory: the cpu has then run all messages.
  std::unique_ptr<Job> make_job(Payload& payload, cuda::Sorted sorted);
  // The job's only batch, on the calling thread; false where that is not possible now.
  bool run_here(Job& job);
  void say(const std::string& text) noexcept;
  void start_job(std::unique_ptr<Job> job);
  void work(Device& device, Slot slot);
  void run(Device& device, Slot& slot, Job& job, const Batch& batch);
  // What a device failed at; says so once a device, and once more when that is its end.
  void note_failure(Device& device, const Error& error);
  void forget_keys();
  void end(std::unique_ptr<Job> job);
  bool any_device_left() const { return slots_left() > 0; }
  // Of devices that are not lost.
  std::size_t slots_left() const {
    std::size_t count = 0;
    for (const auto& device : devices)
      count += device->lost ? 0 : device->slot_count;
    return count;
  }

  Backend& cpu;
  const unsigned queued_payload_max;
  const std::function<void(std::string_view)> warn;
  std::vector<std::unique_ptr<Device>> devices;
  std::size_t slot_count = 0;  // of all devices

  std::atomic<std::uint64_t> message_count = 0;
  std::atomic<std::uint64_t> input_bytes = 0;
  std::atomic<std::uint64_t> failed_batch_count = 0;

  std::mutex mutex;
  std::condition_variable work_arrived;
  std::condition_variable room_arrived;
  std::deque<Job*> queue;  // jobs with batches waiting
  unsigned job_count = 0;  // not ended yet
  bool stopping = false;
  unsigned thread_count = 0;  // that take batches
  std::uint64_t forget_count = 0;
  unsigned forgetting_count = 0;  // threads that have still to wipe their slots
  std::condition_variable forgotten;
  std::mutex forget_mutex;  // one at a time waits for that; before mutex
  std::vector<std::thread> threads;
  std::mutex caller_mutex;          // of the slot below; after forget_mutex
  std::optional<Slot> caller_slot;  // of the first device
};

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const CudaOptions& options, Backend& cpu) {
  NACRE_ASSIGN(const int device_count, cuda::count_devices());
  try {
    auto state = std::make_unique<State>(options, cpu);
    // One that cannot be used is no reason to leave the others idle.
    Error last = {ErrorCode::unsupported};
    for (int number = 0; number < device_count; ++number) {
      if (const auto added = state->add_device(number); !added) {
        last = added.error();
        state->say(fmt::format("CUDA device {} is not used: {}", number, last.message));
      }
    }
    if (state->devices.empty())
      return fail(last.code, fmt::format("cuda: none ({})", last.message));
    // Callers do without one where there is no memory for it.
    if (check(cudaSetDevice(state->devices.front()->number), "choosing a device")) {
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
    // Threads of devices that are there already may look at the list.
    const std::lock_guard lock(mutex);
    devices.push_back(std::move(device));
  }
  const BlockedSignals blocked;
  for (Slot& slot : slots) {
    {
      const std::lock_guard lock(mutex);
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
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  work_arrived.notify_all();
  for (std::thread& thread : threads)
    thread.join();
  // Wiped on the device that it is of.
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
  return {.message_count = state_->message_count,
          .input_bytes = state_->input_bytes,
          .failed_batch_count = state_->failed_batch_count};
}

Result<double> CudaBackend::measure_resident(Payload& payload, unsigned repetitions) {
  std::vector<std::uint32_t> all(payload.messages.size());
  std::iota(all.begin(), all.end(), 0);
  // The slot is made for it, so a message may be longer than a batch.
  const cuda::Sorted sorted = cuda::sort_by_kind(payload, all, 2 * message_size_bytes_max);
  if (sorted.groups.size() != 1 || !sorted.rest.empty())
    return fail(ErrorCode::unsupported, "the payload is no batch of a device");
  const cuda::KindGroup& group = sorted.groups.front();
  const Batch batch = {.kind = group.kind, .indexes = group.indexes};
  std::uint64_t weight = 0;
  for (const Message& message : payload.messages)
    weight += cuda::batch_weight(message);
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
  cuda::Sorted sorted;
  try {
    sorted = cuda::sort_by_kind(payload, indexes);
  } catch (const std::bad_alloc&) {
    state_->cpu.run(payload, indexes);
    return;
  }
  run_sorted(payload, std::move(sorted));
}

void CudaBackend::run_sorted(Payload& payload, cuda::Sorted sorted) {
  std::unique_ptr<Job> job = state_->make_job(payload, std::move(sorted));
  if (job == nullptr) return;
  std::latch ended(1);
  job->done = [&] { ended.count_down(); };
  if (state_->run_here(*job)) {
    state_->end(std::move(job));
    return;
  }
  state_->start_job(std::move(job));
  ended.wait();
}

void CudaBackend::submit(Payload& payload, std::vector<std::uint32_t> indexes,
                         std::function<void()> done) {
  cuda::Sorted sorted;
  try {
    sorted = cuda::sort_by_kind(payload, indexes);
  } catch (const std::bad_alloc&) {
    state_->cpu.submit(payload, std::move(indexes), std::move(done));
    return;
  }
  submit_sorted(payload, std::move(sorted), std::move(done));
}

void CudaBackend::submit_sorted(Payload& payload, cuda::Sorted sorted, std::function<void()> done) {
  std::unique_ptr<Job> job = state_->make_job(payload, std::move(sorted));
  if (job == nullptr) {
    done();
    return;
  }
  job->done = std::move(done);
  state_->start_job(std::move(job));
}

std::unique_ptr<Job> CudaBackend::State::make_job(Payload& payload, cuda::Sorted sorted) {
  std::unique_ptr<Job> job;
  try {
    job = std::make_unique<Job>(payload);
    job->batches = cuda::cut_into_batches(payload, sorted.groups, slots_left());
  } catch (const std::bad_alloc&) {
    for (const cuda::KindGroup& group : sorted.groups)
      cpu.run(payload, group.indexes);
    cpu.run(payload, sorted.rest);
    return nullptr;
  }
  job->for_cpu = std::move(sorted.rest);
  job->input_pinned = cuda::is_pinned(payload.input, payload.input_size);
  // A batch that fails on its way out runs again, from an input that must still be there.
  job->output_pinned =
      cuda::is_pinned(payload.output, payload.output_size) &&
      !overlap(payload.input, payload.input_size, payload.output, payload.output_size);
  return job;
}

bool CudaBackend::State::run_here(Job& job) {
  if (job.batches.size() != 1 || !caller_slot) return false;
  Device& device = *devices.front();
  const std::unique_lock lock(caller_mutex, std::try_to_lock);
  if (!lock || device.lost || !check(cudaSetDevice(device.number), "choosing a device"))
    return false;
  run(device, *caller_slot, job, job.batches.front());
  return true;
}

void CudaBackend::State::start_job(std::unique_ptr<Job> job) {
  if (job->batches.empty()) {
    end(std::move(job));
    return;
  }
  const std::size_t batch_count = job->batches.size();
  {
    std::unique_lock lock(mutex);
    if (!is_engine_thread())
      room_arrived.wait(lock, [&] { return job_count < queued_payload_max; });
    try {
      queue.push_back(job.get());
    } catch (const std::bad_alloc&) {
      lock.unlock();
      for (const Batch& batch : job->batches)
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
  for (std::uint64_t seen_forget_count = 0;;) {
    work_arrived.wait(
        lock, [&] { return stopping || !queue.empty() || seen_forget_count < forget_count; });
    if (seen_forget_count < forget_count) {
      seen_forget_count = forget_count;
      lock.unlock();
      slot.forget();
      lock.lock();
      if (--forgetting_count == 0) forgotten.notify_one();
      continue;
    }
    if (queue.empty()) return;
    if (device.lost && any_device_left()) {
      // Another device's thread may have missed its call.
      work_arrived.notify_one();
      --thread_count;
      return;
    }
    Job* const job = queue.front();
    const Batch& batch = job->batches[job->next_batch++];
    ++job->running;
    if (job->next_batch == job->batches.size()) queue.pop_front();
    lock.unlock();
    run(device, slot, *job, batch);
    lock.lock();
    if (--job->running > 0 || job->next_batch < job->batches.size()) continue;
    --job_count;
    room_arrived.notify_one();
    lock.unlock();
    end(std::unique_ptr<Job>(job));
    lock.lock();
  }
}

void CudaBackend::State::forget_keys() {
  const std::lock_guard one(forget_mutex);
  std::unique_lock lock(mutex);
  ++forget_count;
  forgetting_count = thread_count;
  work_arrived.notify_all();
  forgotten.wait(lock, [&] { return forgetting_count == 0; });
  lock.unlock();
  const std::lock_guard no_caller(caller_mutex);
  if (caller_slot && check(cudaSetDevice(devices.front()->number), "choosing a device"))
    caller_slot->forget();
}

void CudaBackend::State::run(Device& device, Slot& slot, Job& job, const Batch& batch) {
  for (const std::uint32_t index : batch.indexes)
    job.payload.results[index] = {};
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
    static_cast<void>(cuda::synchronize_device("waiting for the device"));
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
  const bool answers = cuda::synchronize_device("asking a device").has_value();
  if (!answers) device.lost = true;
  if ((answers ? device.failure_said : device.loss_said).exchange(true)) return;
  say(fmt::format("{} {}: {}; the cpu does its work{}", device.name, device.number, error.message,
                  answers ? "" : " from now on"));
}

// It is the caller's code: what it throws must not end the thread.
void CudaBackend::State::say(const std::string& text) noexcept {
  if (warn == nullptr) return;
  try {
    warn(text);
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
