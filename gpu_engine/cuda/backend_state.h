// SPDX-License-Identifier: Apache-2.0
// The backend's threads: one for each slot. All of them take parts of jobs from one queue, so that
// devices, copies and kernels overlap without a plan. A job is a payload's batches, or stretches of
// it that are sorted where they run. The thread that ends a job's last part runs what is left over
// on the cpu and ends the job. One more slot is for a caller that waits for a job of one batch or
// of stretches.
//
// Invariants: only its thread uses a slot, and the callers' slot is used under its mutex; a job
// ends once, after all its results; a thread whose device is lost ends while another device is
// left; when none is left, all threads go on taking batches, which the cpu then runs.
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
  // Nothing without memory; the cpu has then run all messages.
  std::unique_ptr<cuda::Job> make_job(Payload& payload, Sorted sorted);
  // Nothing without memory; nothing has run then.
  std::unique_ptr<cuda::Job> make_unsorted_job(Payload& payload) const;
  // Takes part in a job on the calling thread, together with the backend's threads, as long as
  // parts are left. False where that is not possible now; the job has not begun then.
  bool run_here(std::unique_ptr<cuda::Job>& job) NACRE_EXCLUDES(mutex);
  void say(const std::string& text) noexcept;
  void start_job(std::unique_ptr<cuda::Job> job) NACRE_EXCLUDES(mutex);
  void work(cuda::Device& device, cuda::Slot slot) NACRE_EXCLUDES(mutex);
  // Takes the next part of a job that has one. The caller must end it.
  std::size_t begin_part(cuda::Job& job) NACRE_REQUIRES(mutex);
  // Runs a part with the lock released. Returns whether more parts are left; otherwise the job may
  // be gone.
  bool run_part(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, std::size_t part,
                UniqueLock<Mutex>& lock) NACRE_REQUIRES(mutex);
  void run(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, const cuda::Batch& batch);
  void run(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, const cuda::Stretch& stretch);
  // Notes what a device failed at. Warns once a device, and once more when the device is lost.
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
  unsigned thread_count NACRE_GUARDED_BY(mutex) = 0;  // threads that take batches
  std::uint64_t forget_count NACRE_GUARDED_BY(mutex) = 0;
  // Threads that still have to wipe their slots.
  unsigned forgetting_count NACRE_GUARDED_BY(mutex) = 0;
  ConditionVariable forgotten;
  Mutex forget_mutex;  // held by the one caller that waits for that; locked before mutex
  std::vector<std::thread> threads;
  Mutex caller_mutex;  // locked after forget_mutex
  std::optional<cuda::Slot> caller_slot NACRE_GUARDED_BY(caller_mutex);  // of the first device
};

}  // namespace nacre::engine
