// SPDX-License-Identifier: Apache-2.0
// The worker threads and their queue.
#include "gpu_engine/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "gpu_engine/base/blocked_signals.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::engine {
namespace {

constexpr unsigned thread_count_max = 256;
constexpr std::size_t key_count_max = 256;

void refuse(Payload& payload, MessageIndexes indexes) {
  for (const std::uint32_t index : indexes)
    payload.results[index] = {
        .ok = false, .error = ErrorCode::out_of_memory, .detail = "no memory to run the message"};
}

unsigned usable_core_count() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    return static_cast<unsigned>(CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

struct CpuBackend::Job {
  Job(Payload& of, MessageIndexes messages) : payload(of), indexes(messages) {}

  void run_tasks() noexcept {
    for (;;) {
      const std::size_t next = cursor.fetch_add(1, std::memory_order_relaxed);
      if (next >= schedule.tasks.size()) return;
      run_task(schedule.tasks[next]);
    }
  }

  void run_task(const Task& task) noexcept {
    if (task.kind == Task::Kind::part) {
      run_split_part(task.first);
      return;
    }
    const std::span<const std::uint32_t> mine =
        std::span<const std::uint32_t>(schedule.order).subspan(task.first, task.count);
    if (task.kind == Task::Kind::serial_messages) {
      run_serial_messages(payload, keys, mine);
      return;
    }
    for (const std::uint32_t index : mine)
      payload.results[index] = run_message(payload, keys, index);
  }

  // The thread that ends the last part writes the message's result.
  void run_split_part(std::uint32_t part_index) noexcept {
    part_results[part_index] = run_part(payload, keys, schedule.parts[part_index]);
    const std::size_t split_index = split_of_part[part_index];
    if (parts_left[split_index].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    const Split& split = schedule.splits[split_index];
    payload.results[split.message_index] = combine_parts(
        std::span<const Part>(schedule.parts).subspan(split.first_part, split.part_count),
        std::span<const MessageResult>(part_results).subspan(split.first_part, split.part_count));
  }

  void prepare_parts() {
    part_results.resize(schedule.parts.size());
    split_of_part.resize(schedule.parts.size());
    parts_left = std::vector<std::atomic<std::uint32_t>>(schedule.splits.size());
    for (std::uint32_t i = 0; i < schedule.splits.size(); ++i) {
      const Split& split = schedule.splits[i];
      parts_left[i] = split.part_count;
      std::fill_n(split_of_part.begin() + split.first_part, split.part_count, i);
    }
  }

  // done() is the caller's code. If it throws, against its contract, the thread must not end.
  void call_done() noexcept {
    try {
      done();
    } catch (...) {
    }
  }

  Payload& payload;
  MessageIndexes indexes;
  std::vector<std::uint32_t> owned_indexes;  // of a submitted job: what indexes refers to
  ExpandedKeys keys;
  Schedule schedule;
  // Indexed by part, and by split message.
  std::vector<MessageResult> part_results;
  std::vector<std::uint32_t> split_of_part;
  std::vector<std::atomic<std::uint32_t>> parts_left;
  std::atomic<std::size_t> cursor = 0;
  unsigned participant_max = 1;
  bool submitted = false;  // on the heap, ends with done(); otherwise run() waits for ended
  std::function<void()> done;
  // Guarded by the backend's mutex.
  unsigned participant_count = 0;
  bool queued = false;
  bool ended = false;
};

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(unsigned thread_count,
                                                       unsigned queued_payload_max) {
  if (thread_count == 0) thread_count = usable_core_count();
  thread_count = std::min(thread_count, thread_count_max);
  try {
    std::unique_ptr<CpuBackend> backend(new CpuBackend(std::max(1u, queued_payload_max)));
    const BlockedSignals blocked;
    for (unsigned i = 0; i < thread_count; ++i) {
      backend->workers_.emplace_back([raw = backend.get()] { raw->work(); });
      pthread_setname_np(backend->workers_.back().native_handle(), "nacre-engine");
    }
    return backend;
  } catch (const std::exception& error) {
    return fail(ErrorCode::out_of_memory,
                fmt::format("starting {} engine threads: {}", thread_count, error.what()));
  }
}

CpuBackend::CpuBackend(unsigned queued_payload_max)
    : queued_payload_max_(queued_payload_max), key_cache_(key_count_max) {}

CpuBackend::~CpuBackend() {
  {
    const LockGuard lock(mutex_);
    stopping_ = true;
  }
  work_arrived_.notify_all();
  for (std::thread& worker : workers_)
    worker.join();
}

std::string CpuBackend::name() const {
  return fmt::format("cpu, {} threads", workers_.size());
}

ExpandedKeys CpuBackend::expand_keys(const Payload& payload) {
  ExpandedKeys expanded(payload.key_table.size());
  for (std::size_t i = 0; i < expanded.size(); ++i) {
    const Payload::Key& key = payload.key_table[i];
    auto made = key_cache_.get(key.use, payload.keys.view().subspan(key.offset, key.size));
    if (made)
      expanded[i].object = std::move(*made);
    else
      expanded[i].error = made.error().code;
  }
  return expanded;
}

// False when there was no memory for the schedule; the results then have that error.
bool CpuBackend::prepare(Job& job) {
  Payload& payload = job.payload;
  try {
    job.keys = expand_keys(payload);
    job.schedule =
        make_schedule(payload, job.indexes, job.keys, static_cast<unsigned>(workers_.size()));
    job.prepare_parts();
  } catch (const std::exception&) {
    refuse(payload, job.indexes);
    return false;
  }
  job.participant_max = job.schedule.worker_count;
  return true;
}

void CpuBackend::run(Payload& payload, MessageIndexes indexes) {
  struct Caller {
    explicit Caller(std::atomic<unsigned>& callers) : callers_(callers), among(++callers) {}
    ~Caller() { --callers_; }
    std::atomic<unsigned>& callers_;
    const unsigned among;
  };
  const Caller caller(caller_count_);
  Job job(payload, indexes);
  if (!prepare(job)) return;
  const auto share = static_cast<unsigned>(workers_.size()) / caller.among;
  job.participant_max = std::min(job.participant_max, std::max(1u, share));
  // The caller is one of the participants.
  if (job.participant_max > 1) {
    try {
      const LockGuard lock(mutex_);
      queue_.push_back(&job);
      job.queued = true;
      job.participant_count = 1;
    } catch (const std::bad_alloc&) {
      job.participant_max = 1;
    }
  }
  if (job.participant_max == 1) {
    job.run_tasks();
    return;
  }
  for (unsigned i = 1; i < job.participant_max; ++i)
    work_arrived_.notify_one();
  job.run_tasks();
  UniqueLock lock(mutex_);
  leave(lock, job);
  run_ended_.wait(lock, [&]() NACRE_REQUIRES(mutex_) { return job.ended; });
}

void CpuBackend::submit(Payload& payload, std::vector<std::uint32_t> indexes,
                        std::function<void()> done) {
  std::unique_ptr<Job> job(new (std::nothrow) Job(payload, {}));
  if (job == nullptr) {
    refuse(payload, indexes);
    done();
    return;
  }
  job->owned_indexes = std::move(indexes);
  job->indexes = job->owned_indexes;
  job->submitted = true;
  job->done = std::move(done);
  if (!prepare(*job)) {
    job->call_done();
    return;
  }
  const unsigned wanted = job->participant_max;
  {
    UniqueLock lock(mutex_);
    if (!is_engine_thread())
      room_arrived_.wait(lock, [&]() NACRE_REQUIRES(mutex_) {
        return queued_submission_count_ < queued_payload_max_;
      });
    try {
      queue_.push_back(job.get());
    } catch (const std::bad_alloc&) {
      lock.unlock();
      job->run_tasks();
      job->call_done();
      return;
    }
    job->queued = true;
    ++queued_submission_count_;
    // From here on the job belongs to its last participant.
    static_cast<void>(job.release());
  }
  for (unsigned i = 0; i < wanted; ++i)
    work_arrived_.notify_one();
}

void CpuBackend::remove_from_queue(Job& job) {
  queue_.erase(std::find(queue_.begin(), queue_.end(), &job));
  job.queued = false;
  if (!job.submitted) return;
  --queued_submission_count_;
  room_arrived_.notify_one();
}

// A participant leaves when the cursor has passed the last task.
void CpuBackend::leave(UniqueLock<Mutex>& lock, Job& job) {
  if (job.queued) remove_from_queue(job);
  if (--job.participant_count > 0) return;
  if (!job.submitted) {
    job.ended = true;
    run_ended_.notify_all();
    return;
  }
  const Unlocked unlocked(lock, mutex_);
  const std::unique_ptr<Job> owned(&job);
  job.call_done();
}

void CpuBackend::work() {
  mark_engine_thread();
  UniqueLock lock(mutex_);
  for (;;) {
    work_arrived_.wait(lock, [&]() NACRE_REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job& job = *queue_.front();
    if (++job.participant_count >= job.participant_max) remove_from_queue(job);
    lock.unlock();
    job.run_tasks();
    lock.lock();
    leave(lock, job);
  }
}

}  // namespace nacre::engine
