// SPDX-License-Identifier: Apache-2.0
// Lets requests at the volume, or keeps them from it while the volume is locked.
//
// A thread that answers a request holds a pass, and so does a task that answers it later. A pass
// counts up a number of the thread's own stripe and reads the state: nothing is shared with threads
// of other stripes, and nothing waits. The state and the counts are changed and read in one order
// that all threads agree on (seq_cst). So either the gate sees the pass, or the pass sees that the
// gate is shut.
//
// Before the gate is closed it drains: it lets at the volume only what the kernel hands over of its
// own, such as dirty pages, so that the kernel can be made to drop its caches. All others are
// refused from then on. So a program that writes or syncs without end does not keep the gate from
// closing.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class RequestGate {
 public:
  enum class State : std::uint8_t { open, draining, closed };
  // Of the kernel: it hands over pages or times of files, which programs wrote before.
  enum class Origin : std::uint8_t { program, kernel };

  // Leave to use the volume, as long as it lives. Empty if there was none.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), stripe_(other.stripe_) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(stripe_, other.stripe_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->leave(stripe_);
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class RequestGate;
    Pass(RequestGate* gate, unsigned stripe) : gate_(gate), stripe_(stripe) {}
    RequestGate* gate_ = nullptr;
    unsigned stripe_ = 0;
  };

  Pass enter(Origin origin) noexcept;
  // One more pass, for a caller that holds one.
  Pass enter_again() noexcept;

  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  void drain() noexcept { state_ = State::draining; }
  // Lets nothing at the volume from now on, and returns when nobody uses it any more. Called by a
  // thread that holds no pass, and serves no request.
  void close() NACRE_EXCLUDES(mutex_);
  void open() noexcept { state_ = State::open; }

 private:
  static constexpr unsigned stripe_count = 32;
  struct alignas(64) Stripe {
    std::atomic<std::uint64_t> count{0};
  };
  static unsigned own_stripe() noexcept;
  Pass take() noexcept;
  void leave(unsigned stripe) noexcept;
  bool is_unused() const noexcept;

  std::array<Stripe, stripe_count> stripes_;
  std::atomic<std::uint64_t> again_count_{0};  // of enter_again()
  std::atomic<State> state_{State::open};
  Mutex mutex_;
  ConditionVariable left_;
};

}  // namespace nacre::fs
