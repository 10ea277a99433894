// SPDX-License-Identifier: Apache-2.0
// What runs for longer than a request. A job has a thread of its own. It belongs to the server, so
// a page that was reloaded sees it again. All classes here are thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "gpu_engine/base/mutex.h"
#include "tools/web/web_error.h"

namespace nacre::tools::web {

// At most this many jobs run at once, besides those that only watch; others wait. At most this many
// are kept once they are over.
inline constexpr std::size_t running_job_count_max = 4;
inline constexpr std::size_t waiting_job_count_max = 64;
inline constexpr std::size_t finished_job_count_max = 100;
inline constexpr std::size_t shown_file_count_max = 1000;

enum class JobState : std::uint8_t { queued, running, done, failed, cancelled };
std::string_view to_string(JobState state);

// One file of a job.
struct JobFile {
  std::string input, output;  // paths; output is empty if there is none
  JobState state = JobState::queued;
  std::uint64_t plain_bytes = 0, stored_bytes = 0;
  std::string warning;
  std::optional<WebError> error;
  bool can_download = false;
};

class Job {
 public:
  Job(std::uint64_t number, std::string kind, std::string title, std::string command)
      : number_(number),
        kind_(std::move(kind)),
        title_(std::move(title)),
        command_(std::move(command)) {}

  std::uint64_t number() const { return number_; }  // unique within a server, from 1
  // The line that does the same in a terminal; it holds no secret.
  const std::string& command() const { return command_; }
  nlohmann::json to_json() const;  // as API.md describes a job
  JobState state() const;
  bool is_over() const { return state() > JobState::running; }

  // Called by the job's own thread.
  bool is_cancelled() const { return is_cancelled_; }
  // Another program does the work from now on, and this job only watches it: it takes no place from
  // other jobs, does not keep the server, and cannot be cancelled. Forgetting it ends the watch.
  void hand_over();
  bool is_handed_over() const { return is_handed_over_; }
  // Returns when the job is cancelled, and at the latest after timeout.
  void wait_until_cancelled(std::chrono::milliseconds timeout);
  // Begins a stage: its name in the page's texts ("stage.NAME"), the unit of its amounts, and how
  // much there is to do, if that is known. The amount that is done begins at 0.
  void set_stage(std::string stage, std::string unit, std::optional<std::uint64_t> total);
  void add_done(std::uint64_t amount);
  // Takes over the progress that a program prints. If its stage is a new one, begins that stage.
  void show_progress(const std::string& stage, const std::string& unit, std::uint64_t done,
                     std::optional<std::uint64_t> total);
  void set_files(std::vector<JobFile> files);
  // Calls change under the job's mutex, so change must not call the job. index: of set_files().
  void change_file(std::size_t index, const std::function<void(JobFile&)>& change);
  // The folder of the volume that it works on, if it is one.
  void set_volume(std::string path);
  void set_result(nlohmann::json result);
  // What a program said while it worked: notes and warnings, one a line.
  void set_messages(std::string messages);

  // The file that a download gives; empty if there is none.
  std::string download_path(std::size_t index) const;
  // action is called once when the job is cancelled, or at once if it was; an empty function ends
  // that. It must not call the job.
  void on_cancel(std::function<void()> action);
  // Asks the job to end. Does not wait for its end.
  void cancel();

 private:
  friend class JobTable;
  using Clock = std::chrono::system_clock;
  void begin();
  void end(const tl::expected<void, WebError>& outcome);

  const std::uint64_t number_;
  const std::string kind_, title_, command_;
  std::atomic<bool> is_cancelled_ = false;
  std::atomic<bool> is_handed_over_ = false;
  mutable Mutex mutex_;
  JobState state_ NACRE_GUARDED_BY(mutex_) = JobState::queued;
  Clock::time_point created_ NACRE_GUARDED_BY(mutex_) = Clock::now();
  std::optional<Clock::time_point> started_, ended_;
  std::string stage_, unit_ = "bytes";
  std::uint64_t done_ NACRE_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> total_ NACRE_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point stage_begin_ NACRE_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point stage_end_ NACRE_GUARDED_BY(mutex_) = {};
  std::vector<JobFile> files_ NACRE_GUARDED_BY(mutex_);
  ConditionVariable cancelled_;
  std::string volume_ NACRE_GUARDED_BY(mutex_);
  nlohmann::json result_ NACRE_GUARDED_BY(mutex_);
  std::string messages_ NACRE_GUARDED_BY(mutex_);
  std::optional<WebError> error_ NACRE_GUARDED_BY(mutex_);
  std::function<void()> on_cancel_ NACRE_GUARDED_BY(mutex_);
  std::function<void()> clean_up_;      // set before the thread begins, called after its end
  std::function<void()> on_hand_over_;  // set before the work begins
};

class JobTable {
 public:
  using Work = std::function<tl::expected<void, WebError>(Job& job)>;

  JobTable() = default;
  ~JobTable();  // cancels what runs, and waits for it
  JobTable(const JobTable&) = delete;
  JobTable& operator=(const JobTable&) = delete;

  // Starts a job. clean_up is called when the job is forgotten, at the latest by the destructor.
  // Error: busy if too many wait.
  tl::expected<std::shared_ptr<Job>, WebError> start(std::string kind, std::string title,
                                                     std::string command, Work work,
                                                     std::function<void()> clean_up = {});
  std::shared_ptr<Job> find(std::string_view id) const;  // null if there is none; id: its number
  std::vector<std::shared_ptr<Job>> list() const;        // the newest first
  // Error: busy while it runs, unless it only watches; not_found.
  tl::expected<void, WebError> forget(std::string_view id);
  bool has_unfinished() const;  // jobs that only watch do not count

 private:
  struct Entry {
    std::shared_ptr<Job> job;
    std::thread thread;
  };
  void run(Job& job, const Work& work);
  void drop(std::list<Entry>::iterator entry, UniqueLock<Mutex>& lock) NACRE_REQUIRES(mutex_);
  void drop_oldest(UniqueLock<Mutex>& lock) NACRE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::list<Entry> entries_ NACRE_GUARDED_BY(mutex_);  // the oldest first
  std::uint64_t last_number_ NACRE_GUARDED_BY(mutex_) = 0;
  std::size_t running_count_ NACRE_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::tools::web
