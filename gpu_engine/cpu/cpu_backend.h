// SPDX-License-Identifier: Apache-2.0
// The backend on the processor's cores: a fixed set of threads that share the messages of a
// payload.
//
// A payload becomes a job: a schedule of tasks and one cursor. Each participant, a thread, moves
// the cursor by one task and runs that task, until no tasks are left; the last participant to leave
// ends the job. Locks are taken once for each job and participant, never for a task or a message.
// The caller of run() is a participant, so run() makes progress even when every worker is busy, and
// needs no worker when the payload is small.
//
// Invariants: a job in the queue has room for more participants and may have tasks left. submit()
// waits while the queue holds queued_payload_max submitted jobs, unless an engine's own thread
// calls it. done() runs once, after all results: on a worker, or on the calling thread when there
// is no memory for the job.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/cpu/key_cache.h"
#include "gpu_engine/cpu/run_message.h"
#include "gpu_engine/cpu/schedule.h"

namespace nacre::engine {

class CpuBackend final : public Backend {
 public:
  // thread_count 0: one thread for each core that this process may use. out_of_memory when the
  // system gives no threads.
  static Result<std::unique_ptr<CpuBackend>> create(unsigned thread_count,
                                                    unsigned queued_payload_max);
  ~CpuBackend() override;  // completes all submitted jobs, then ends the threads

  std::string name() const override;
  unsigned thread_count() const { return static_cast<unsigned>(workers_.size()); }
  void run(Payload& payload, MessageIndexes indexes) override;
  void submit(Payload& payload, std::vector<std::uint32_t> indexes,
              std::function<void()> done) override;
  void forget_keys() override { key_cache_.clear(); }

 private:
  struct Job;

  explicit CpuBackend(unsigned queued_payload_max);
  ExpandedKeys expand_keys(const Payload& payload);
  bool prepare(Job& job);
  void work();
  void leave(UniqueLock<Mutex>& lock, Job& job) NACRE_REQUIRES(mutex_);
  void remove_from_queue(Job& job) NACRE_REQUIRES(mutex_);

  const unsigned queued_payload_max_;
  KeyCache key_cache_;
  // How many callers are within run(). They share the workers equally: many callers are enough
  // threads by themselves.
  std::atomic<unsigned> caller_count_{0};
  Mutex mutex_;
  ConditionVariable work_arrived_;
  ConditionVariable room_arrived_;
  ConditionVariable run_ended_;
  std::deque<Job*> queue_ NACRE_GUARDED_BY(mutex_);
  unsigned queued_submission_count_ NACRE_GUARDED_BY(mutex_) = 0;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace nacre::engine
