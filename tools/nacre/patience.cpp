// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/patience.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

constexpr std::chrono::seconds first_note{5};
constexpr std::chrono::seconds later_note{60};

}  // namespace

Patience::Patience(std::string what) : what_(std::move(what)), thread_([this] { run(); }) {}

Patience::~Patience() {
  {
    LockGuard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Patience::run() {
  UniqueLock lock(mutex_);
  const auto began = std::chrono::steady_clock::now();
  auto next = began + first_note;
  while (!wake_.wait_until(lock, next, [this]() NACRE_REQUIRES(mutex_) { return over_; })) {
    const auto waited = std::chrono::steady_clock::now() - began;
    print_note(fmt::format("{}; for {} s now", what_,
                           std::chrono::duration_cast<std::chrono::seconds>(waited).count()));
    next = std::chrono::steady_clock::now() + later_note;
  }
}

}  // namespace nacre::tools
