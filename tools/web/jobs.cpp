// SPDX-License-Identifier: Apache-2.0
#include "tools/web/jobs.h"

#include <algorithm>
#include <exception>

#include "gpu_engine/base/printable.h"
#include "tools/web/path_text.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

constexpr double rate_after_seconds = 0.2;
constexpr std::chrono::milliseconds cancel_check_interval{200};  // of jobs that wait

json time_json(const std::optional<std::chrono::system_clock::time_point>& time) {
  if (!time) return {};
  return std::chrono::duration<double>(time->time_since_epoch()).count();
}

json file_json(const JobFile& file) {
  return {
      {"input", to_path_text(file.input)},   {"name", printable(last_name(file.input))},
      {"output", to_path_text(file.output)}, {"state", std::string(to_string(file.state))},
      {"plain_bytes", file.plain_bytes},     {"stored_bytes", file.stored_bytes},
      {"warning", printable(file.warning)},  {"error", file.error ? to_json(*file.error) : json()},
      {"can_download", file.can_download}};
}

}  // namespace

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::queued:
      return "queued";
    case JobState::running:
      return "running";
    case JobState::done:
      return "done";
    case JobState::failed:
      return "failed";
    case JobState::cancelled:
      return "cancelled";
  }
  return "";
}

json Job::to_json() const {
  const LockGuard lock(mutex_);
  const bool is_over = state_ > JobState::running;
  const auto until = is_over ? stage_end_ : std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(until - stage_begin_).count();
  json rate, seconds_left;
  if (state_ != JobState::queued && done_ > 0 && seconds > rate_after_seconds) {
    rate = static_cast<double>(done_) / seconds;
    if (total_ && !is_over) {
      const auto left = static_cast<double>(*total_ - std::min(*total_, done_));
      seconds_left = left * seconds / static_cast<double>(done_);
    }
  }
  json files = json::array();
  for (const JobFile& file : files_) {
    if (files.size() == shown_file_count_max) break;
    files.push_back(file_json(file));
  }
  return {{"id", std::to_string(number_)},
          {"kind", kind_},
          {"title", printable(title_)},
          {"state", std::string(web::to_string(state_))},
          {"created", time_json(created_)},
          {"started", time_json(started_)},
          {"ended", time_json(ended_)},
          {"progress",
           {{"stage", stage_},
            {"done", done_},
            {"total", total_ ? json(*total_) : json()},
            {"unit", unit_},
            {"rate", rate},
            {"seconds_left", seconds_left}}},
          {"files", std::move(files)},
          {"file_count", files_.size()},
          {"result", result_},
          {"messages", printable_lines(messages_)},
          {"error", error_ ? web::to_json(*error_) : json()},
          {"command", command_},
          {"volume", to_path_text(volume_)},
          {"is_handed_over", is_handed_over_.load()},
          {"is_cancellable", !is_over && !is_handed_over_}};
}

JobState Job::state() const {
  const LockGuard lock(mutex_);
  return state_;
}

void Job::set_stage(std::string stage, std::string unit, std::optional<std::uint64_t> total) {
  const LockGuard lock(mutex_);
  stage_ = std::move(stage);
  unit_ = std::move(unit);
  total_ = total;
  done_ = 0;
  stage_begin_ = std::chrono::steady_clock::now();
}

void Job::add_done(std::uint64_t amount) {
  const LockGuard lock(mutex_);
  done_ += amount;
}

void Job::show_progress(const std::string& stage, const std::string& unit, std::uint64_t done,
                        std::optional<std::uint64_t> total) {
  const LockGuard lock(mutex_);
  if (stage_ != stage) stage_begin_ = std::chrono::steady_clock::now();
  stage_ = stage;
  unit_ = unit;
  done_ = done;
  total_ = total;
}

void Job::set_files(std::vector<JobFile> files) {
  const LockGuard lock(mutex_);
  files_ = std::move(files);
}

void Job::change_file(std::size_t index, const std::function<void(JobFile&)>& change) {
  const LockGuard lock(mutex_);
  if (index < files_.size()) change(files_[index]);
}

void Job::hand_over() {
  if (!is_handed_over_.exchange(true) && on_hand_over_) on_hand_over_();
}

void Job::wait_until_cancelled(std::chrono::milliseconds timeout) {
  UniqueLock lock(mutex_);
  if (!is_cancelled_) cancelled_.wait_for(lock, timeout);
}

void Job::set_volume(std::string path) {
  const LockGuard lock(mutex_);
  volume_ = std::move(path);
}

void Job::set_result(json result) {
  const LockGuard lock(mutex_);
  result_ = std::move(result);
}

void Job::set_messages(std::string messages) {
  const LockGuard lock(mutex_);
  messages_ = std::move(messages);
}

std::string Job::download_path(std::size_t index) const {
  const LockGuard lock(mutex_);
  return index < files_.size() && files_[index].can_download ? files_[index].output : "";
}

void Job::on_cancel(std::function<void()> action) {
  UniqueLock lock(mutex_);
  on_cancel_ = std::move(action);
  if (is_cancelled_ && on_cancel_) std::exchange(on_cancel_, {})();
}

void Job::cancel() {
  const LockGuard lock(mutex_);
  if (state_ > JobState::running) return;
  is_cancelled_ = true;
  cancelled_.notify_all();
  if (on_cancel_) std::exchange(on_cancel_, {})();
}

void Job::begin() {
  const LockGuard lock(mutex_);
  state_ = JobState::running;
  started_ = Clock::now();
  stage_begin_ = std::chrono::steady_clock::now();
}

void Job::end(const tl::expected<void, WebError>& outcome) {
  const LockGuard lock(mutex_);
  on_cancel_ = {};
  ended_ = Clock::now();
  stage_end_ = std::chrono::steady_clock::now();
  if (!outcome) {
    error_ = outcome.error();
    if (error_->command.empty()) error_->command = command_;
  }
  const bool is_cancelled = !outcome && is_cancelled_;
  state_ = is_cancelled ? JobState::cancelled : outcome ? JobState::done : JobState::failed;
  for (JobFile& file : files_) {
    if (file.state <= JobState::running) {
      file.state = is_cancelled ? JobState::cancelled : JobState::failed;
    }
  }
}

JobTable::~JobTable() {
  UniqueLock lock(mutex_);
  is_stopping_ = true;
  for (const Entry& entry : entries_)
    entry.job->cancel();
  changed_.notify_all();
  while (!entries_.empty())
    drop(entries_.begin(), lock);
}

tl::expected<std::shared_ptr<Job>, WebError> JobTable::start(std::string kind, std::string title,
                                                             std::string command, Work work,
                                                             std::function<void()> clean_up) {
  UniqueLock lock(mutex_);
  const auto unfinished = std::count_if(entries_.begin(), entries_.end(),
                                        [](const Entry& entry) { return !entry.job->is_over(); });
  if (is_stopping_ || static_cast<std::size_t>(unfinished) >= waiting_job_count_max) {
    if (clean_up) clean_up();
    return tl::unexpected(WebError(
        Error{ErrorCode::busy, "too many jobs wait already: let some end, or cancel some"}));
  }
  drop_oldest(lock);
  auto job =
      std::make_shared<Job>(++last_number_, std::move(kind), std::move(title), std::move(command));
  job->clean_up_ = std::move(clean_up);
  entries_.push_back({job, {}});
  entries_.back().thread = std::thread([this, job, work = std::move(work)] { run(*job, work); });
  return job;
}

void JobTable::run(Job& job, const Work& work) {
  {
    UniqueLock lock(mutex_);
    while (running_count_ >= running_job_count_max && !job.is_cancelled() && !is_stopping_)
      changed_.wait_for(lock, cancel_check_interval);
    ++running_count_;
  }
  job.on_hand_over_ = [this] {
    const LockGuard lock(mutex_);
    --running_count_;
    changed_.notify_all();
  };
  job.begin();
  tl::expected<void, WebError> outcome =
      tl::unexpected(WebError(Error{ErrorCode::cancelled, "the job was cancelled"}));
  try {
    if (!job.is_cancelled()) outcome = work(job);
  } catch (const std::bad_alloc&) {
    outcome = tl::unexpected(WebError(
        Error{ErrorCode::out_of_memory,
              "the server has no memory for this job: end other programs, and try again"}));
  } catch (const std::exception& error) {
    outcome = tl::unexpected(WebError(Error{ErrorCode::io, error.what()}));
  }
  job.end(outcome);
  const LockGuard lock(mutex_);
  if (!job.is_handed_over()) --running_count_;
  changed_.notify_all();
}

std::shared_ptr<Job> JobTable::find(std::string_view id) const {
  const LockGuard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (std::to_string(entry.job->number()) == id) return entry.job;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Job>> JobTable::list() const {
  const LockGuard lock(mutex_);
  std::vector<std::shared_ptr<Job>> jobs;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    jobs.push_back(entry->job);
  return jobs;
}

tl::expected<void, WebError> JobTable::forget(std::string_view id) {
  UniqueLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (std::to_string(entry->job->number()) != id) continue;
    if (entry->job->is_handed_over()) entry->job->cancel();
    if (!entry->job->is_over() && !entry->job->is_handed_over()) {
      return tl::unexpected(
          WebError(Error{ErrorCode::busy, "the job still runs: cancel it first"}));
    }
    drop(entry, lock);
    return {};
  }
  return tl::unexpected(
      WebError(Error{ErrorCode::not_found, "this job is not in the list: it was cleared"}));
}

bool JobTable::has_unfinished() const {
  const LockGuard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return !entry.job->is_over() && !entry.job->is_handed_over();
  });
}

// The thread of a job that is over may still wait for the mutex.
void JobTable::drop(std::list<Entry>::iterator entry, UniqueLock<Mutex>& lock) {
  std::list<Entry> dropped;
  dropped.splice(dropped.begin(), entries_, entry);
  const Unlocked unlocked(lock, mutex_);
  changed_.notify_all();
  if (dropped.front().thread.joinable()) dropped.front().thread.join();
  if (dropped.front().job->clean_up_) dropped.front().job->clean_up_();
}

void JobTable::drop_oldest(UniqueLock<Mutex>& lock) {
  while (true) {
    const auto finished = std::count_if(entries_.begin(), entries_.end(),
                                        [](const Entry& entry) { return entry.job->is_over(); });
    if (static_cast<std::size_t>(finished) < finished_job_count_max) return;
    const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                     [](const Entry& entry) { return entry.job->is_over(); });
    drop(oldest, lock);
  }
}

}  // namespace nacre::tools::web
