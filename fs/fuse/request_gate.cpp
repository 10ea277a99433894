// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/request_gate.h"

#include <algorithm>

namespace nacre::fs {

unsigned RequestGate::own_stripe() noexcept {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned own = next.fetch_add(1, std::memory_order_relaxed) % stripe_count;
  return own;
}

RequestGate::Pass RequestGate::take() noexcept {
  const unsigned stripe = own_stripe();
  stripes_[stripe].count.fetch_add(1);
  return {this, stripe};
}

RequestGate::Pass RequestGate::enter(Origin origin) noexcept {
  Pass pass = take();
  const State state = state_;
  if (state == State::open) return pass;
  if (state == State::draining && origin == Origin::kernel) return pass;
  return {};
}

RequestGate::Pass RequestGate::enter_again() noexcept {
  again_count_.fetch_add(1);
  return take();
}

// A closing thread looks at the counts after it has shut the gate, so a pass that is given back
// before that needs no word.
void RequestGate::leave(unsigned stripe) noexcept {
  stripes_[stripe].count.fetch_sub(1);
  if (state_ != State::closed) return;
  const LockGuard lock(mutex_);
  left_.notify_all();
}

// Once the gate is shut, new passes come only from other passes. Such a pass may appear in a stripe
// that was looked at already, and the one that it came from may be gone before its stripe is looked
// at. Then their number has changed meanwhile. A pass that is about to be refused is also counted
// for a moment, and wakes this thread when it goes.
bool RequestGate::is_unused() const noexcept {
  const std::uint64_t before = again_count_;
  const bool is_empty = std::all_of(stripes_.begin(), stripes_.end(),
                                    [](const Stripe& stripe) { return stripe.count == 0; });
  return is_empty && again_count_ == before;
}

void RequestGate::close() {
  state_ = State::closed;
  UniqueLock lock(mutex_);
  left_.wait(lock, [this] { return is_unused(); });
}

}  // namespace nacre::fs
