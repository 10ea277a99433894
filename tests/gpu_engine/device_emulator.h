// SPDX-License-Identifier: Apache-2.0
// Runs device code on the host: the names that the kernels' headers (.cuh) take from the CUDA
// compiler, for one block of threads. Include it before them, and include no header of CUDA.
//
// A thread of the block is a fiber, which runs until it meets the others: in a barrier or where
// lanes of a warp exchange values. Threads that are ready go on in an order that is drawn anew each
// time, so that a missing barrier shows. Only full warps exchange values.
//
// Not for several threads of the host at once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#define NACRE_EMULATES_DEVICES 1

// NOLINTBEGIN: names of the CUDA compiler.
#define __device__
#define __host__
#define __constant__ static
#define __shared__
#define __forceinline__ inline

struct uint4 {
  unsigned x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};

namespace nacre::engine {

inline constexpr unsigned emulated_lanes = 32;

// Saves what a function must keep, on this stack, and goes on where the other one was saved.
extern "C" void nacre_switch_stacks(void** saved, void* other);
asm(R"(
  .text
  .weak nacre_switch_stacks
  .type nacre_switch_stacks, @function
nacre_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size nacre_switch_stacks, . - nacre_switch_stacks
)");

class DeviceEmulator {
 public:
  static DeviceEmulator& get() {
    static DeviceEmulator emulator;
    return emulator;
  }

  // Runs body in thread_count threads, a multiple of 32, until all have returned.
  void run(unsigned thread_count, const std::function<void()>& body) {
    body_ = &body;
    while (fibers_.size() < thread_count)
      fibers_.push_back(std::make_unique<Fiber>());
    thread_count_ = thread_count;
    block_ = {};
    block_.size = thread_count;
    warps_.assign(thread_count / emulated_lanes, Meeting{.size = emulated_lanes});
    for (unsigned i = 0; i < thread_count; ++i)
      start(*fibers_[i]);
    unsigned running = thread_count;
    while (running > 0) {
      bool advanced = false;
      const unsigned first = next_random() % thread_count;
      const unsigned step = next_random() % 2 == 0 ? 1 : thread_count - 1;
      for (unsigned i = 0, at = first; i < thread_count; ++i, at = (at + step) % thread_count) {
        Fiber& fiber = *fibers_[at];
        if (fiber.is_done || (fiber.waits_for != nullptr && fiber.waits_for->turn == fiber.turn))
          continue;
        fiber.waits_for = nullptr;
        thread_ = at;
        nacre_switch_stacks(&stack_, fiber.stack);
        advanced = true;
        if (fiber.is_done) --running;
      }
      if (!advanced) fail("the threads wait for each other");
    }
  }

  unsigned thread() const { return thread_; }
  unsigned lane() const { return thread_ % emulated_lanes; }

  void meet_block() { meet(block_, 1); }

  // All lanes of the warp meet. The values that they gave stay valid until they meet next.
  const std::array<std::uint32_t, emulated_lanes>& exchange(std::uint32_t value, unsigned what) {
    Meeting& warp = warps_[thread_ / emulated_lanes];
    auto& values = warp.values[warp.turn % 2];
    values[lane()] = value;
    meet(warp, what);
    return values;
  }

  void check_lanes(unsigned mask) {
    if (mask != 0xffffffffu) fail("lanes of a part of a warp exchange");
  }

 private:
  struct Meeting {
    unsigned size = 0;
    unsigned arrived = 0;
    unsigned turn = 0;
    unsigned what = 0;  // they meet for
    std::array<std::uint32_t, emulated_lanes> values[2] = {};
  };
  struct Fiber {
    static constexpr std::size_t stack_size = 64 << 10;
    std::unique_ptr<std::max_align_t[]> memory{
        new std::max_align_t[stack_size / sizeof(std::max_align_t)]};
    void* stack = nullptr;
    bool is_done = true;
    const Meeting* waits_for = nullptr;
    unsigned turn = 0;
  };

  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "device emulator: %s\n", why);
    std::abort();
  }

  std::uint32_t next_random() { return random_ = random_ * 1664525 + 1013904223, random_ >> 16; }

  void start(Fiber& fiber) {
    auto* const top =
        reinterpret_cast<void**>(reinterpret_cast<char*>(fiber.memory.get()) + Fiber::stack_size);
    // Six registers, where to go, and where that would return to: the stack is then aligned as at
    // the entry of a function.
    std::fill(top - 8, top, nullptr);
    top[-2] = reinterpret_cast<void*>(&DeviceEmulator::enter);
    fiber.stack = top - 8;
    fiber.is_done = false;
    fiber.waits_for = nullptr;
  }

  static void enter() {
    DeviceEmulator& emulator = get();
    (*emulator.body_)();
    Fiber& fiber = *emulator.fibers_[emulator.thread_];
    fiber.is_done = true;
    nacre_switch_stacks(&fiber.stack, emulator.stack_);
    fail("a thread that had returned went on");
  }

  void meet(Meeting& meeting, unsigned what) {
    if (meeting.arrived == 0) meeting.what = what;
    if (meeting.what != what) fail("threads meet in different places");
    Fiber& fiber = *fibers_[thread_];
    if (++meeting.arrived == meeting.size) {
      meeting.arrived = 0;
      ++meeting.turn;
      return;
    }
    fiber.waits_for = &meeting;
    fiber.turn = meeting.turn;
    nacre_switch_stacks(&fiber.stack, stack_);
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  unsigned thread_count_ = 0;
  unsigned thread_ = 0;
  void* stack_ = nullptr;
  Meeting block_;
  std::vector<Meeting> warps_;
  std::uint32_t random_ = 1;
};

}  // namespace nacre::engine

struct EmulatedThreadIndex {
  struct {
    operator unsigned() const { return nacre::engine::DeviceEmulator::get().thread(); }
  } x;
};
[[maybe_unused]] static EmulatedThreadIndex threadIdx;

[[maybe_unused]] static inline nacre::engine::DeviceEmulator& emulated_device(unsigned mask) {
  auto& emulator = nacre::engine::DeviceEmulator::get();
  emulator.check_lanes(mask);
  return emulator;
}

[[maybe_unused]] static inline void __syncthreads() {
  nacre::engine::DeviceEmulator::get().meet_block();
}
[[maybe_unused]] static inline void __syncwarp(unsigned mask = 0xffffffffu) {
  emulated_device(mask).exchange(0, 2);
}
[[maybe_unused]] static inline unsigned __ballot_sync(unsigned mask, bool bit) {
  const auto& values = emulated_device(mask).exchange(bit, 3);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    ballot |= values[lane] << lane;
  return ballot;
}
[[maybe_unused]] static inline bool __any_sync(unsigned mask, bool bit) {
  return __ballot_sync(mask, bit) != 0;
}
[[maybe_unused]] static inline bool __all_sync(unsigned mask, bool bit) {
  return __ballot_sync(mask, bit) == 0xffffffffu;
}
[[maybe_unused]] static inline unsigned __match_any_sync(unsigned mask, unsigned value) {
  const auto& values = emulated_device(mask).exchange(value, 4);
  unsigned peers = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    peers |= unsigned{values[lane] == value} << lane;
  return peers;
}
[[maybe_unused]] static inline unsigned __shfl_sync(unsigned mask, unsigned value, unsigned from) {
  return emulated_device(mask).exchange(value, 5)[from % 32];
}
[[maybe_unused]] static inline unsigned __shfl_up_sync(unsigned mask, unsigned value,
                                                       unsigned step) {
  auto& device = emulated_device(mask);
  const unsigned lane = device.lane();
  return device.exchange(value, 6)[lane >= step ? lane - step : lane];
}
[[maybe_unused]] static inline unsigned __shfl_down_sync(unsigned mask, unsigned value,
                                                         unsigned step) {
  auto& device = emulated_device(mask);
  const unsigned lane = device.lane();
  return device.exchange(value, 7)[lane + step < 32 ? lane + step : lane];
}
[[maybe_unused]] static inline unsigned __shfl_xor_sync(unsigned mask, unsigned value,
                                                        unsigned with) {
  auto& device = emulated_device(mask);
  const unsigned lane = device.lane();
  return device.exchange(value, 8)[(lane ^ with) % 32];
}

[[maybe_unused]] static inline int __popc(unsigned value) {
  return std::popcount(value);
}
[[maybe_unused]] static inline int __clz(unsigned value) {
  return std::countl_zero(value);
}
[[maybe_unused]] static inline int __ffs(unsigned value) {
  return value == 0 ? 0 : std::countr_zero(value) + 1;
}
[[maybe_unused]] static inline unsigned __brev(unsigned value) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit)
    reversed = reversed << 1 | (value >> bit & 1);
  return reversed;
}
[[maybe_unused]] static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
[[maybe_unused]] static inline unsigned __funnelshift_r(unsigned low, unsigned high,
                                                        unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift % 32));
}
[[maybe_unused]] static inline unsigned __funnelshift_l(unsigned low, unsigned high,
                                                        unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) << (shift % 32) >> 32);
}

[[maybe_unused]] static inline unsigned atomicAdd(std::uint32_t* at, unsigned value) {
  return *at += value, *at - value;
}
[[maybe_unused]] static inline unsigned atomicExch(std::uint32_t* at, unsigned value) {
  return std::exchange(*at, value);
}
[[maybe_unused]] static inline unsigned atomicMax(std::uint32_t* at, unsigned value) {
  const unsigned before = *at;
  *at = std::max(before, value);
  return before;
}

[[maybe_unused]] static constexpr bool __isGlobal(const void*) {
  return true;
}
#if !defined(__clang__)
[[maybe_unused]] static inline void __builtin_assume(bool) {}
#endif
[[maybe_unused]] static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
using std::max;
using std::min;
// NOLINTEND

#endif
