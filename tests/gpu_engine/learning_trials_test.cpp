// SPDX-License-Identifier: Apache-2.0
// When the planner tries the backend that it thinks is the slower one: simulated, as in
// learning_planner_test.cpp.
#include <utility>

#include "tests/gpu_engine/simulated_machine.h"

namespace nacre::engine {
namespace {

// On a device host rle's encoding of 1 MiB stayed on the device, where the cores take half as long:
// something once slowed them down, and whenever they were tried again their threads had slept.
TEST(LearningPlannerTrials, comes_back_to_a_backend_that_is_slow_after_a_rest) {
  for (const auto& [cold_factor, cold_left] :
       {std::pair(1.5, 0.0), {2.0, 0.0}, {2.5, 0.0}, {2.0, 0.5}, {3.0, 0.5}}) {
    Machine machine(cpu_costs, cuda_costs, {}, true);
    machine.cold_factor = cold_factor;
    machine.cold_left = cold_left;
    // The cpu takes 0.59 ms of it, the device 0.71.
    const Payload payload = make_payload({Operation::checksum, Codec::none}, 4u << 20);
    for (int i = 0; i < 30; ++i)
      machine.run(payload);
    EXPECT_FALSE(machine.used_cuda);
    for (int i = 0; i < 20 && !machine.used_cuda; ++i)
      machine.run(payload, 4);
    EXPECT_TRUE(machine.used_cuda);
    for (int i = 0; i < 1000; ++i)
      machine.run(payload);
    int on_cuda = 0;
    for (int i = 0; i < 500; ++i) {
      machine.run(payload);
      on_cuda += machine.used_cuda;
    }
    EXPECT_LE(on_cuda, 10) << cold_factor << ", " << cold_left;
  }
}

// On a device host payloads of 70 us stayed on the device, which takes 115 us: a trial of seven was
// over before sixteen threads were awake.
TEST(LearningPlannerTrials, tries_a_backend_for_as_long_as_it_takes_to_wake) {
  for (const double wake_ns : {1e5, 3e5, 5e5}) {
    for (const double wake_factor : {1.8, 2.5, 4.0}) {
      // 70 us of 1 MiB on the cpu.
      Machine machine(costs_of(0, 7e4 / (1u << 20)), costs_of(6e4, 5.5e4 / (1u << 20)), {}, true);
      machine.wake_factor = wake_factor;
      machine.wake_ns = {wake_ns, 0};
      const Payload payload = make_payload({Operation::checksum, Codec::none}, 1u << 20);
      for (int i = 0; i < 30; ++i)
        machine.run(payload);
      for (int i = 0; i < 20 && !machine.used_cuda; ++i)
        machine.run(payload, 4);
      EXPECT_TRUE(machine.used_cuda);
      for (int i = 0; i < 3000; ++i)
        machine.run(payload);
      int on_cuda = 0;
      for (int i = 0; i < 1000; ++i) {
        machine.run(payload);
        on_cuda += machine.used_cuda;
      }
      EXPECT_LE(on_cuda, 40) << wake_factor << " times as long for " << wake_ns << " ns";
    }
  }
}

TEST(LearningPlannerTrials, tries_the_other_backend_seldom) {
  Machine machine(cpu_costs, cuda_costs, {}, true);
  for (const auto& [size, on_cuda] : {std::pair(2u << 20, false), std::pair(16u << 20, true)}) {
    const Payload payload = make_payload({Operation::checksum, Codec::none}, size);
    int trial_count = 0;
    double took = 0;
    for (int i = 0; i < 6400; ++i) {
      took += machine.run(payload);
      trial_count += machine.used_cuda != on_cuda;
    }
    EXPECT_GE(trial_count, 5);
    EXPECT_LE(trial_count, 6400 / 64);
    EXPECT_LE(took, 6400 * machine.better_ns(payload) * 1.01);
  }
  // Hopeless trials are not made: at 1 MiB the device is at least four times as slow.
  const Payload small = make_payload({Operation::checksum, Codec::none}, 1u << 20);
  machine.device->load_factor = 4;
  for (int i = 0; i < 2000; ++i) {
    machine.run(small);
    EXPECT_FALSE(machine.used_cuda && machine.true_ns(Side::cuda, small, 1u << 20) >
                                          4.1 * machine.true_ns(Side::cpu, small, 1u << 20));
  }
}

}  // namespace
}  // namespace nacre::engine
