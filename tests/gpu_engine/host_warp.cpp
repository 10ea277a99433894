// SPDX-License-Identifier: Apache-2.0
// The lanes take turns: each runs up to its next exchange with the others, then the next lane runs.
#include "tests/gpu_engine/host_warp.h"

#include <algorithm>
#include <numeric>

namespace nacre::engine {

// makecontext passes nothing wider than an int.
void HostWarp::enter(unsigned high, unsigned low) {
  auto& warp = *reinterpret_cast<HostWarp*>(std::uintptr_t{high} << 32 | low);
  const std::uint32_t lane = warp.current_;
  (*warp.code_)(Lane(warp, lane));
  warp.lanes_[lane].meeting = Meeting::end;
}

const std::array<std::uint32_t, HostWarp::lane_count>& HostWarp::meet(std::uint32_t lane,
                                                                      Meeting meeting,
                                                                      std::uint32_t value) {
  LaneState& state = lanes_[lane];
  auto& values = values_[state.turn];
  values[lane] = value;
  state.turn ^= 1;
  state.meeting = meeting;
  swapcontext(&state.context, &caller_);
  return values;
}

void HostWarp::run(const std::function<void(Lane)>& code) {
  code_ = &code;
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  for (LaneState& state : lanes_) {
    state.stack.resize(stack_size_bytes);
    state.turn = 0;
    getcontext(&state.context);
    state.context.uc_stack.ss_sp = state.stack.data();
    state.context.uc_stack.ss_size = state.stack.size();
    state.context.uc_link = &caller_;
    makecontext(&state.context, reinterpret_cast<void (*)()>(&HostWarp::enter), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
  }
  std::array<std::uint32_t, lane_count> order;
  std::iota(order.begin(), order.end(), 0u);
  do {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    std::rotate(order.begin(), order.begin() + (random_ >> 59), order.end());
    if (random_ >> 58 & 1) std::reverse(order.begin(), order.end());
    for (const std::uint32_t lane : order) {
      current_ = lane;
      swapcontext(&caller_, &lanes_[lane].context);
    }
    for (const LaneState& state : lanes_)
      met_alike_ = met_alike_ && state.meeting == lanes_[0].meeting;
  } while (met_alike_ && lanes_[0].meeting != Meeting::end);
}

}  // namespace nacre::engine
