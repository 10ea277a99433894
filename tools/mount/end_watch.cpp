// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/end_watch.h"

#include <chrono>

#include <spdlog/spdlog.h>

namespace nacre::tools {

namespace {

constexpr std::chrono::seconds first_notice{5};
constexpr std::chrono::seconds later_notice{60};

}  // namespace

EndWatch::EndWatch(std::string volume, std::function<void()> give_up)
    : volume_(std::move(volume)), give_up_(std::move(give_up)), thread_([this] { run(); }) {}

EndWatch::~EndWatch() {
  {
    LockGuard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool EndWatch::begin() {
  LockGuard lock(mutex_);
  if (begun_) return false;
  begun_ = true;
  wake_.notify_all();
  return true;
}

void EndWatch::signal() {
  {
    LockGuard lock(mutex_);
    if (!noticed_) return;  // the end of a session sends two at once, which count as one
  }
  spdlog::error(
      "giving up on {} after a further signal. What was synced before is safe, and the rest is "
      "lost; the next mount recovers the volume",
      volume_);
  give_up_();
}

void EndWatch::run() {
  UniqueLock lock(mutex_);
  wake_.wait(lock, [this]() NACRE_REQUIRES(mutex_) { return begun_ || over_; });
  const auto began = std::chrono::steady_clock::now();
  auto next = began + first_notice;
  while (!wake_.wait_until(lock, next, [this]() NACRE_REQUIRES(mutex_) { return over_; })) {
    const auto waited = std::chrono::steady_clock::now() - began;
    spdlog::warn(
        "unmounting: waiting for {} to take what is not written yet, for {} s now. It may answer "
        "later; another SIGTERM gives up and loses what was not synced",
        volume_, std::chrono::duration_cast<std::chrono::seconds>(waited).count());
    noticed_ = true;
    next = std::chrono::steady_clock::now() + later_notice;
  }
}

}  // namespace nacre::tools
