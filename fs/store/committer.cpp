// SPDX-License-Identifier: Apache-2.0
// The commit thread: the order in which a group becomes durable.
#include "fs/store/committer.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

namespace {

// After this many flushes of files that were renamed during the commit, it holds renames back.
constexpr int flush_rounds_before_holding_moves = 2;

// After this many attempts a full disk is told.
constexpr int retry_count_max = 8;

// The thread looks for the next request for this long before it sleeps. On a virtual machine a
// wake-up takes 40 µs of the 190 µs of an fsync. A program that writes and syncs without a pause
// asks again within this time.
constexpr std::chrono::microseconds awake_wait{80};

// Errors that concern the backing store as a whole, not one file's bytes.
bool is_of_the_medium(ErrorCode code) {
  switch (code) {
    case ErrorCode::no_space:
    case ErrorCode::corrupt:
    case ErrorCode::tampered:
    case ErrorCode::missing:
    case ErrorCode::out_of_memory:
      return false;
    default:
      return true;
  }
}

}  // namespace

Committer::Committer(metadata::Database& database, SegmentStore& store, Options options)
    : database_(database), store_(store), options_(options) {}

Committer::~Committer() {
  abandon();
}

void Committer::start(CommitSource& source) {
  source_ = &source;
  thread_ = std::thread([this] { run(); });
}

Result<> Committer::stop() {
  if (!thread_.joinable()) return health();
  const auto last = commit(CommitScope{.everything = true});
  abandon();
  return last;
}

void Committer::abandon() {
  {
    LockGuard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Committer::request(CommitScope scope, std::function<void(Result<>)> done) {
  {
    LockGuard lock(mutex_);
    if (!stopping_) {
      requests_.push_back(Request{std::move(scope), std::move(done)});
      has_requests_.store(true, std::memory_order_release);
      ++stats_.request_count;
      wake_.notify_all();
      return;
    }
  }
  done(fail(ErrorCode::cancelled, "the volume is closing"));
}

Result<> Committer::commit(CommitScope scope) {
  Mutex mutex;
  ConditionVariable told;
  std::optional<Result<>> outcome;
  request(std::move(scope), [&](Result<> result) {
    LockGuard lock(mutex);
    outcome = std::move(result);
    told.notify_all();
  });
  UniqueLock lock(mutex);
  told.wait(lock, [&]() NACRE_REQUIRES(mutex) { return outcome.has_value(); });
  return *outcome;
}

Result<> Committer::health() const {
  LockGuard lock(mutex_);
  return health_;
}

CommitterStats Committer::stats() const {
  LockGuard lock(mutex_);
  return stats_;
}

// A caller that was told often writes and asks again at once.
void Committer::stay_awake() const {
  if (std::thread::hardware_concurrency() < 2) return;
  const auto until = std::chrono::steady_clock::now() + awake_wait;
  while (!has_requests_.load(std::memory_order_acquire) &&
         std::chrono::steady_clock::now() < until) {
#ifdef __x86_64__
    // Leaves the core to its other hardware thread, which often runs the caller.
    __builtin_ia32_pause();
#endif
  }
}

void Committer::run() {
  const auto interval = std::chrono::milliseconds(options_.interval_ms);
  auto next = std::chrono::steady_clock::now() + interval;
  UniqueLock lock(mutex_);
  while (true) {
    wake_.wait_until(lock, next,
                     [&]() NACRE_REQUIRES(mutex_) { return stopping_ || !requests_.empty(); });
    const bool due = std::chrono::steady_clock::now() >= next;
    if (due) next = std::chrono::steady_clock::now() + interval;
    if (stopping_ && requests_.empty()) return;
    if (requests_.empty() && !(due && (has_changes() || something_left_))) {
      lock.unlock();
      if (due) restore_ballast();
      lock.lock();
      continue;
    }
    std::vector<Request> requests = std::exchange(requests_, {});
    has_requests_.store(false, std::memory_order_relaxed);
    lock.unlock();

    CommitScope scope{.everything = requests.empty() || due};
    for (const Request& request : requests) {
      scope.everything |= request.scope.everything;
      scope.inodes.insert(request.scope.inodes.begin(), request.scope.inodes.end());
    }
    const Result<> outcome = commit_in_attempts(scope);
    // A commit of a few files does not show whether the data that an earlier commit left is
    // written.
    if (scope.everything || !outcome || data_left_) something_left_ = !outcome || data_left_;
    if (outcome) restore_ballast();
    lock.lock();
    ++stats_.commit_count;  // before any caller is told of it
    if (!outcome) ++stats_.failure_count;
    lock.unlock();
    for (Request& request : requests)
      request.done(outcome);
    if (!requests.empty()) stay_awake();
    requests.clear();
    lock.lock();
  }
}

Result<> Committer::commit_in_attempts(const CommitScope& scope) {
  Result<> outcome = commit_group(scope);
  int retries = 0;
  for (; retries < retry_count_max && is_cut_short_ && has_gained_; ++retries)
    outcome = commit_group(scope);
  if (retries > 0) {
    const LockGuard lock(mutex_);
    stats_.retry_count += static_cast<std::uint64_t>(retries);
  }
  return outcome;
}

Result<> Committer::commit_group(const CommitScope& scope) {
  is_cut_short_ = has_gained_ = false;
  NACRE_TRY(health());
  // A group that no_space kept from the disk goes first; its records are on the medium already.
  if (frozen_left_) NACRE_TRY(finish_group());
  // Changes from here on may miss this commit. A smaller scope leaves other files' data to the
  // interval's commit.
  if (scope.everything) changed_.store(false, std::memory_order_relaxed);

  const std::uint64_t flushed_before = source_->flushed_bytes();
  const Result<> flushed =
      with_ballast(&Ballast::release_for_data, [&] { return source_->flush(scope); });
  if (!flushed && is_of_the_medium(flushed.error().code)) return fail_for_good(flushed.error());
  data_left_ = !flushed;
  has_gained_ |= source_->flushed_bytes() > flushed_before;

  NACRE_ASSIGN(const bool frozen, freeze_group());
  return frozen ? finish_group() : Result<>();
}

Result<bool> Committer::freeze_group() {
  std::unique_lock moves(moves_, std::defer_lock);
  for (int round = 0;; ++round) {
    freeze_wanted_.store(true, std::memory_order_release);
    UniqueLock operations(operations_);
    freeze_wanted_.store(false, std::memory_order_release);
    freeze_wanted_.notify_all();
    const auto unflushed = source_->unflushed_moves();
    if (unflushed.empty()) {
      if (auto staged = source_->stage(); !staged) return fail_for_good(staged.error());
      if (store_.stage()) note_change();
      return database_.freeze();
    }
    operations.unlock();
    if (round == flush_rounds_before_holding_moves) moves.lock();
    const CommitScope scope{
        .inodes = unflushed, .moves_held = moves.owns_lock(), .moves_only = true};
    const Result<> flushed =
        with_ballast(&Ballast::release_for_data, [&] { return source_->flush(scope); });
    if (!flushed) {
      if (is_of_the_medium(flushed.error().code)) return fail_for_good(flushed.error());
      // Names must not become durable without their data, so nothing is committed until there is
      // space, or memory.
      return tl::unexpected(flushed.error());
    }
  }
}

Result<> Committer::finish_group() {
  // A failed sync may have lost the bytes that it was to write, so it is never tried again.
  if (auto synced = store_.sync(); !synced) return fail_for_good(synced.error());
  const auto written =
      with_ballast(&Ballast::release_for_rows, [&] { return database_.commit_frozen(true); });
  if (!written) {
    if (written.error().code != ErrorCode::no_space) return fail_for_good(written.error());
    frozen_left_ = true;
    return written;
  }
  frozen_left_ = false;
  has_gained_ |= store_.committed() > 0;
  return {};
}

template <typename Step>
Result<> Committer::with_ballast(bool (Ballast::*release)(), Step step) {
  Result<> outcome = step();
  if (outcome || outcome.error().code != ErrorCode::no_space) return outcome;
  const auto again = [&] {
    outcome = step();
    is_cut_short_ |= !outcome && outcome.error().code == ErrorCode::no_space;
    return outcome;
  };
  // What is given up here may be free only after the commit.
  const bool has_made_room = options_.make_room && options_.make_room();
  has_gained_ |= has_made_room;
  if (options_.ballast == nullptr || !(options_.ballast->*release)()) {
    if (has_made_room) return again();
    is_cut_short_ = true;
    return outcome;
  }
  spdlog::warn(
      "{}: the space kept in reserve is released so that files can still be deleted; new data is "
      "refused until there is free space again",
      outcome.error().message);
  return again();
}

void Committer::restore_ballast() {
  if (options_.ballast == nullptr || options_.ballast->is_held() || data_left_) return;
  if (options_.ballast->restore()) spdlog::info("there is free space again: new data is accepted");
}

tl::unexpected<Error> Committer::fail_for_good(const Error& error) {
  LockGuard lock(mutex_);
  if (health_) {
    spdlog::error(
        "a commit failed: {} ({}); the volume refuses changes from now on, what was durable before "
        "stays; unmount, mend the cause and mount again",
        error.message, to_string(error.code));
    health_ = tl::unexpected(error);
  }
  return tl::unexpected(health_.error());
}

}  // namespace nacre::fs
