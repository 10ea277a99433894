// SPDX-License-Identifier: Apache-2.0
// The backend's threads: one for each slot. All of them take parts of jobs from one queue, so that
// devices, copies and kernels overlap without a plan. The parts of a job are a payload's batches,
// or stretches of the payload that the threads sort themselves. The thread that ends a job's last
// part runs the messages that no device takes on the cpu, and ends the job. One more slot belongs
// to the callers: one that waits for a job of a single batch or of stretches takes part in the job
// itself.
//
// Invariants: a slot is used only by its thread, and the callers' slot only under caller_mutex. A
// job ends once, after all its results are there. A thread whose device is lost ends, unless no
// device is left: then all threads go on taking parts, which the cpu runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/cuda_backend.h"
#include "gpu_engine/cuda/device.h"
#include "gpu_engine/cuda/job.h"

namespace nacre::engine {

struct CudaBackend::State {
  State(const CudaOptions& options, Backend& finisher)
      : cpu(finisher),
        queued_payload_max(std::max(1u, options.queued_payload_max)),
        warn(options.warn) {}
  ~State();

  // Opens the device and starts its threads.
  Result<> add_device(int number) NACRE_EXCLUDES(mutex);
  // nullptr when there is no memory; the cpu has then run all messages.
  std::unique_ptr<cuda::Job> make_job(Payload& payload, Sorted sorted);
  // nullptr when there is no memory; no message has run then.
  std::unique_ptr<cuda::Job> make_unsorted_job(Payload& payload) const;
  // Runs parts of a job on the calling thread, together with the backend's threads, as long as
  // parts are left. Takes the job over and returns true, or returns false if the callers' slot is
  // in use or the first device is lost.
  bool run_here(std::unique_ptr<cuda::Job>& job) NACRE_EXCLUDES(mutex);
  void say(const std::string& text) noexcept;
  void start_job(std::unique_ptr<cuda::Job> job) NACRE_EXCLUDES(mutex);
  void work(cuda::Device& device, cuda::Slot slot) NACRE_EXCLUDES(mutex);
  // Takes the next part of a job that has one left. The caller must run it with run_part().
  std::size_t begin_part(cuda::Job& job) NACRE_REQUIRES(mutex);
  // Runs a part with the lock released. Returns whether parts are left. If not, the job may already
  // be deleted.
  bool run_part(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, std::size_t part,
                UniqueLock<Mutex>& lock) NACRE_REQUIRES(mutex);
  void run(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, const cuda::Batch& batch);
  void run(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, const cuda::Stretch& stretch);
  // Marks a device as lost if it no longer answers. Warns at the first failure of a device, and
  // when it is lost.
  void note_failure(cuda::Device& device, const Error& error);
  void forget_keys() NACRE_EXCLUDES(forget_mutex, mutex, caller_mutex);
  void end(std::unique_ptr<cuda::Job> job);
  bool any_device_left() const { return slots_left() > 0; }
  // The slots of devices that are not lost.
  std::size_t slots_left() const {
    std::size_t count = 0;
    for (const auto& device : devices)
      count += device->lost ? 0 : device->slot_count;
    return count;
  }

  Backend& cpu;
  const unsigned queued_payload_max;
  const std::function<void(std::string_view)> warn;
  std::vector<std::unique_ptr<cuda::Device>> devices;
  std::size_t slot_count = 0;  // of all devices

  std::atomic<std::uint64_t> message_count = 0;
  std::atomic<std::uint64_t> input_bytes = 0;
  std::atomic<std::uint64_t> failed_batch_count = 0;

  Mutex mutex;
  ConditionVariable work_arrived;
  ConditionVariable room_arrived;
  std::deque<cuda::Job*> queue NACRE_GUARDED_BY(mutex);  // jobs with parts that have not begun
  unsigned job_count NACRE_GUARDED_BY(mutex) = 0;        // jobs that have not ended
  bool stopping NACRE_GUARDED_BY(mutex) = false;
  unsigned thread_count NACRE_GUARDED_BY(mutex) = 0;  // threads that take parts
  std::uint64_t forget_count NACRE_GUARDED_BY(mutex) = 0;
  // Threads that still have to wipe their slots.
  unsigned forgetting_count NACRE_GUARDED_BY(mutex) = 0;
  ConditionVariable forgotten;
  Mutex forget_mutex;  // held while forget_keys() waits for `forgotten`; locked before mutex
  std::vector<std::thread> threads;
  Mutex caller_mutex;  // locked after forget_mutex
  std::optional<cuda::Slot> caller_slot NACRE_GUARDED_BY(caller_mutex);  // of the first device
};

}  // namespace nacre::engine
