// SPDX-License-Identifier: Apache-2.0
// The backend's threads: one a slot, all taking parts of jobs from one queue, so that devices and
// copies and kernels overlap without a plan. A job is a payload's batches, or stretches of it that
// are sorted where they run; whoever ends its last one runs what is left over on the cpu and ends
// the job. One more slot is for a caller that waits for a job of one batch or of stretches.
//
// Invariants: a slot is used by its thread alone, the callers' under its mutex; a job ends once,
// after all its results; a thread whose device is lost ends while another device is left; when none
// is, all go on taking batches, which the cpu then runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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

  // Opens it and starts its threads.
  Result<> add_device(int number);
  // Nothing without memory: the cpu has then run all messages.
  std::unique_ptr<cuda::Job> make_job(Payload& payload, Sorted sorted);
  // Nothing without memory, and then nothing has run.
  std::unique_ptr<cuda::Job> make_unsorted_job(Payload& payload) const;
  // Takes part in a job on the calling thread, with the threads, as long as parts are left. False
  // where that is not possible now, and then the job has not begun.
  bool run_here(std::unique_ptr<cuda::Job>& job);
  void say(const std::string& text) noexcept;
  void start_job(std::unique_ptr<cuda::Job> job);
  void work(cuda::Device& device, cuda::Slot slot);
  // The next part of a job that has one; whoever runs it has to end it.
  std::size_t begin_part(cuda::Job& job);
  // Runs it, without the lock in between. Whether more are left; otherwise the job may be gone.
  bool run_part(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, std::size_t part,
                std::unique_lock<std::mutex>& lock);
  void run(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, const cuda::Batch& batch);
  void run(cuda::Device& device, cuda::Slot& slot, cuda::Job& job, const cuda::Stretch& stretch);
  // What a device failed at; says so once a device, and once more when that is its end.
  void note_failure(cuda::Device& device, const Error& error);
  void forget_keys();
  void end(std::unique_ptr<cuda::Job> job);
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
  std::vector<std::unique_ptr<cuda::Device>> devices;
  std::size_t slot_count = 0;  // of all devices

  std::atomic<std::uint64_t> message_count = 0;
  std::atomic<std::uint64_t> input_bytes = 0;
  std::atomic<std::uint64_t> failed_batch_count = 0;

  std::mutex mutex;
  std::condition_variable work_arrived;
  std::condition_variable room_arrived;
  std::deque<cuda::Job*> queue;  // jobs with parts that have not begun
  unsigned job_count = 0;        // not ended yet
  bool stopping = false;
  unsigned thread_count = 0;  // that take batches
  std::uint64_t forget_count = 0;
  unsigned forgetting_count = 0;  // threads that have still to wipe their slots
  std::condition_variable forgotten;
  std::mutex forget_mutex;  // one at a time waits for that; before mutex
  std::vector<std::thread> threads;
  std::mutex caller_mutex;                // of the slot below; after forget_mutex
  std::optional<cuda::Slot> caller_slot;  // of the first device
};

}  // namespace nacre::engine
