// SPDX-License-Identifier: Apache-2.0
// The gate before a volume that can be locked, and what is forgotten while it is closed.
#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "fs/fuse/kept_forgets.h"
#include "fs/fuse/request_gate.h"

namespace nacre::tests {
namespace {

using fs::KeptForgets;
using fs::RequestGate;
using Origin = RequestGate::Origin;
using State = RequestGate::State;

TEST(RequestGate, lets_in_by_state_and_origin) {
  RequestGate gate;
  EXPECT_TRUE(gate.enter(Origin::program));
  EXPECT_TRUE(gate.enter(Origin::kernel));
  gate.drain();
  EXPECT_FALSE(gate.enter(Origin::program));
  EXPECT_TRUE(gate.enter(Origin::kernel));
  gate.close();
  EXPECT_FALSE(gate.enter(Origin::program));
  EXPECT_FALSE(gate.enter(Origin::kernel));
  gate.open();
  EXPECT_TRUE(gate.enter(Origin::program));
}

void wait_until_shut(const RequestGate& gate) {
  while (gate.state() != State::closed)
    std::this_thread::yield();
}

// The closing thread has not returned when the last pass goes, wherever that is given back.
TEST(RequestGate, closes_when_the_last_pass_is_given_back) {
  RequestGate gate;
  std::optional<RequestGate::Pass> pass(gate.enter(Origin::program));
  std::atomic<bool> is_closed{false};
  std::thread closing([&] {
    gate.close();
    is_closed = true;
  });
  wait_until_shut(gate);
  std::optional<RequestGate::Pass> later(gate.enter_again());
  pass.reset();
  EXPECT_FALSE(is_closed);
  std::thread task([&, held = std::move(later)]() mutable {
    auto last = gate.enter_again();
    held.reset();
    EXPECT_FALSE(is_closed);
  });
  task.join();
  closing.join();
  EXPECT_TRUE(is_closed);
}

// A moved pass counts once.
TEST(RequestGate, a_pass_that_moves_is_given_back_once) {
  RequestGate gate;
  {
    RequestGate::Pass pass = gate.enter(Origin::program);
    RequestGate::Pass other(std::move(pass));
    RequestGate::Pass third;
    third = std::move(other);
    EXPECT_FALSE(other);
    EXPECT_TRUE(third);
  }
  gate.close();  // returns
}

// What is closed is used by nobody: each user of the number takes it for whole, and the closing
// thread breaks it.
TEST(RequestGate, nobody_is_inside_while_it_is_closed) {
  constexpr int thread_count = 4;
  constexpr int round_count = 100;
  RequestGate gate;
  std::uint64_t guarded = 1;  // no atomic: thread sanitizers see a use of it that is not ordered
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> entered{0};
  std::atomic<std::uint64_t> broken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      while (!over) {
        auto pass = gate.enter(i % 2 == 0 ? Origin::program : Origin::kernel);
        if (!pass) {
          std::this_thread::yield();
          continue;
        }
        if (guarded != 1) ++broken;
        // As a task that answers later, on this thread or another.
        auto later = gate.enter_again();
        pass = {};
        if (guarded != 1) ++broken;
        ++entered;
      }
    });
  }
  for (int round = 0; round < round_count; ++round) {
    const std::uint64_t before = entered;
    while (entered == before)
      std::this_thread::yield();
    gate.drain();
    gate.close();
    guarded = 0;
    guarded = 1;
    gate.open();
  }
  over = true;
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(broken, 0u);
}

TEST(KeptForgets, are_handed_over_when_the_gate_opens) {
  RequestGate gate;
  KeptForgets kept;
  EXPECT_FALSE(kept.note(gate, 7, 1));  // the volume is there
  gate.close();
  EXPECT_TRUE(kept.note(gate, 7, 1));
  EXPECT_TRUE(kept.note(gate, 8, 5));
  EXPECT_TRUE(kept.note(gate, 7, 2));
  std::unordered_map<std::uint64_t, std::uint64_t> found;
  kept.open(gate, [&](std::uint64_t inode, std::uint64_t lookups) {
    EXPECT_NE(gate.state(), State::open);
    found[inode] += lookups;
  });
  EXPECT_EQ(found, (std::unordered_map<std::uint64_t, std::uint64_t>{{7, 3}, {8, 5}}));
  EXPECT_EQ(gate.state(), State::open);
  EXPECT_FALSE(kept.note(gate, 7, 1));
  gate.close();
  kept.open(gate, [](std::uint64_t, std::uint64_t) { ADD_FAILURE() << "handed over twice"; });
}

}  // namespace
}  // namespace nacre::tests
