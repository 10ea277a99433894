// SPDX-License-Identifier: Apache-2.0
// How the backend's threads run jobs; backend_state.h has the invariants.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/cuda/backend_state.h"

namespace nacre::engine {

using cuda::Batch;
using cuda::check;
using cuda::Device;
using cuda::Job;
using cuda::Slot;

bool CudaBackend::State::run_here(std::unique_ptr<Job>& job) {
  if (!job->has_parts_left() || !caller_mutex.try_lock()) return false;
  const LockGuard own(caller_mutex, std::adopt_lock);
  Device& device = *devices.front();
  if (!caller_slot || device.lost || !check(cudaSetDevice(device.number), "choosing a device"))
    return false;
  UniqueLock lock(mutex);
  // No other thread can end the job while a part of it is running.
  Job& here = *job.release();
  ++job_count;
  std::size_t part = begin_part(here);
  std::size_t helper_count = std::min(here.part_count() - 1, threads.size());
  if (helper_count > 0) {
    try {
      queue.push_back(&here);
    } catch (const std::bad_alloc&) {
      helper_count = 0;
    }
  }
  lock.unlock();
  for (std::size_t i = 0; i < helper_count; ++i)
    work_arrived.notify_one();
  lock.lock();
  while (run_part(device, *caller_slot, here, part, lock))
    part = begin_part(here);
  return true;
}

void CudaBackend::State::start_job(std::unique_ptr<Job> job) {
  if (job->part_count() == 0) {
    end(std::move(job));
    return;
  }
  const std::size_t part_count = job->part_count();
  {
    UniqueLock lock(mutex);
    if (!is_engine_thread())
      room_arrived.wait(lock,
                        [&]() NACRE_REQUIRES(mutex) { return job_count < queued_payload_max; });
    try {
      queue.push_back(job.get());
    } catch (const std::bad_alloc&) {
      lock.unlock();
      for (const Batch& batch : job->batches)
        cpu.run(job->payload, batch.indexes);
      if (job->counted != nullptr) job->counts = cuda::run_on(cpu, job->payload);
      end(std::move(job));
      return;
    }
    // From here on the job belongs to the thread that ends its last part.
    static_cast<void>(job.release());
    ++job_count;
  }
  for (std::size_t i = 0; i < std::min(part_count, threads.size()); ++i)
    work_arrived.notify_one();
}

std::size_t CudaBackend::State::begin_part(Job& job) {
  ++job.running;
  const std::size_t part = job.next_part++;
  if (!job.has_parts_left()) std::erase(queue, &job);
  return part;
}

void CudaBackend::State::work(Device& device, Slot slot) {
  mark_engine_thread();
  static_cast<void>(cudaSetDevice(device.number));
  UniqueLock lock(mutex);
  for (std::uint64_t seen_forget_count = 0;;) {
    work_arrived.wait(lock, [&]() NACRE_REQUIRES(mutex) {
      return stopping || !queue.empty() || seen_forget_count < forget_count;
    });
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
      // This thread may have got the notification that a thread of another device needs.
      work_arrived.notify_one();
      --thread_count;
      return;
    }
    Job& job = *queue.front();
    run_part(device, slot, job, begin_part(job), lock);
  }
}

bool CudaBackend::State::run_part(Device& device, Slot& slot, Job& job, std::size_t part,
                                  UniqueLock<Mutex>& lock) {
  MessageCounts counts;
  {
    const Unlocked unlocked(lock, mutex);
    if (job.stretches.empty()) {
      run(device, slot, job, job.batches[part]);
    } else {
      run(device, slot, job, job.stretches[part]);
      counts = cuda::count_messages(job.payload, job.stretches[part]);
    }
  }
  job.counts.failed += counts.failed;
  job.counts.input_bytes += counts.input_bytes;
  job.counts.output_bytes += counts.output_bytes;
  --job.running;
  if (job.has_parts_left()) return true;
  if (job.running > 0) return false;
  --job_count;
  room_arrived.notify_one();
  const Unlocked unlocked(lock, mutex);
  end(std::unique_ptr<Job>(&job));
  return false;
}

void CudaBackend::State::forget_keys() {
  const LockGuard one(forget_mutex);
  UniqueLock lock(mutex);
  ++forget_count;
  forgetting_count = thread_count;
  work_arrived.notify_all();
  forgotten.wait(lock, [&]() NACRE_REQUIRES(mutex) { return forgetting_count == 0; });
  lock.unlock();
  const LockGuard no_caller(caller_mutex);
  if (caller_slot && check(cudaSetDevice(devices.front()->number), "choosing a device"))
    caller_slot->forget();
}

void CudaBackend::State::run(Device& device, Slot& slot, Job& job, const Batch& batch) {
  std::vector<std::uint32_t> refused;
  bool good = false;
  try {
    if (!device.lost) {
      const BusyTime::Use use(device.busy);
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
    // Kernels that were launched must end before the slot's memory serves another batch.
    static_cast<void>(cuda::synchronize_device("waiting for the device"));
  }
  if (good) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t index : batch.indexes)
      bytes += job.payload.messages[index].input_size;
    message_count.fetch_add(batch.indexes.size() - refused.size(), std::memory_order_relaxed);
    input_bytes.fetch_add(bytes, std::memory_order_relaxed);
    device.input_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (refused.empty()) return;
  } else {
    failed_batch_count.fetch_add(1, std::memory_order_relaxed);
  }
  cpu.run(job.payload, good ? MessageIndexes(refused) : MessageIndexes(batch.indexes));
}

// All memory is allocated before anything runs. After an allocation that fails, the cpu runs the
// whole stretch; a message that had already run would run twice, and may have overwritten its
// input.
void CudaBackend::State::run(Device& device, Slot& slot, Job& job, const cuda::Stretch& stretch) {
  std::vector<std::uint32_t> rest;
  std::vector<Batch> batches;
  try {
    std::vector<std::uint32_t> indexes(stretch.count);
    std::iota(indexes.begin(), indexes.end(), stretch.first);
    Sorted sorted = sort_by_kind(job.payload, indexes);
    rest = std::move(sorted.rest);
    batches = cuda::fill_batches(job.payload, std::move(sorted.groups));
  } catch (const std::bad_alloc&) {
    cuda::run_on(cpu, job.payload, stretch);
    return;
  }
  for (const Batch& batch : batches)
    run(device, slot, job, batch);
  if (!rest.empty()) cpu.run(job.payload, rest);
}

void CudaBackend::State::note_failure(Device& device, const Error& error) {
  // If this fails too, the device itself is lost: every call to a lost context fails.
  const bool answers = cuda::synchronize_device("asking a device").has_value();
  if (!answers) device.lost = true;
  if ((answers ? device.failure_said : device.loss_said).exchange(true)) return;
  say(fmt::format("{} {}: {}; the cpu does its work{}", device.name, device.number, error.message,
                  answers ? "" : " from now on"));
}

// warn is the caller's code. If it throws, the thread must not end.
void CudaBackend::State::say(const std::string& text) noexcept {
  if (warn == nullptr) return;
  try {
    warn(text);
  } catch (...) {
  }
}

void CudaBackend::State::end(std::unique_ptr<Job> job) {
  // Messages that no device takes run on this thread and the cpu's threads.
  if (!job->for_cpu.empty()) cpu.run(job->payload, job->for_cpu);
  job->say_ended();
}

}  // namespace nacre::engine
