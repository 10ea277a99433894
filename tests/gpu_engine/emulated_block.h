// SPDX-License-Identifier: Apache-2.0
// Device code on the host: a block of threads, one after the other, each on its own stack. A thread
// runs up to a call that its warp or block makes together; then the next one does. So the code of
// a kernel (.cuh files, which a .cu file wraps) is tested where there is no device. Include this
// before such a file, and nothing of CUDA's.
//
// What it cannot show: races between threads that do not wait for each other, and memory that a
// device would not let be read. It fails a test when the lanes of a warp do not make the same call.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#define __device__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __builtin_assume(condition)

struct EmulatedIndex {
  unsigned x;
};
inline EmulatedIndex threadIdx;

struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
inline uint4 make_uint4(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t w) {
  return {x, y, z, w};
}
struct alignas(8) uint2 {
  std::uint32_t x, y;
};
inline uint2 make_uint2(std::uint32_t x, std::uint32_t y) {
  return {x, y};
}

namespace nacre::engine::emulated {

// Sanitizers follow each stack: that of threads takes jumps between them for calls that never end
// (and would find nothing: one host thread runs them all), that of addresses is slow at them.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool runs_here = false;
#else
inline constexpr bool runs_here = true;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr int part_of_tests = 20;
#else
inline constexpr int part_of_tests = 1;
#endif

inline constexpr unsigned lanes = 32;
inline constexpr std::size_t stack_size_bytes = 64u << 10;

class Block {
 public:
  // Runs body in thread_count threads, whole warps. One block at a time.
  static void run(unsigned thread_count, std::function<void()> body) {
    Block block(thread_count, std::move(body));
    current() = &block;
    block.run_all();
    current() = nullptr;
    if (block.diverged_) throw std::logic_error("lanes of a warp made different calls");
  }

  static Block*& current() {
    static Block* block = nullptr;
    return block;
  }

  // Meets the other lanes of the warp; returns what lane i gave by values()[i].
  const std::uint64_t* meet_warp(std::uint64_t value, unsigned call) {
    Warp& warp = warps_[running_ / lanes];
    const unsigned turn = threads_[running_].meetings++ % 2;
    const unsigned lane = running_ % lanes;
    warp.values[turn][lane] = value;
    warp.calls[turn][lane] = call;
    yield();
    if (warp.calls[turn][lane] != warp.calls[turn][(lane + 1) % lanes]) diverged_ = true;
    return warp.values[turn].data();
  }

  // Meets all threads; returns whether each gave true.
  bool meet_block(bool value) {
    const unsigned turn = barriers_ % 2;
    if (arrived_ == 0) all_[turn] = true;
    all_[turn] = all_[turn] && value;
    const std::size_t barrier = barriers_;
    if (++arrived_ == threads_.size()) {
      arrived_ = 0;
      ++barriers_;
    }
    do
      yield();
    while (barriers_ == barrier && !diverged_);
    return all_[turn];
  }

 private:
  struct Thread {
    ucontext_t context;  // to begin with, then
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    unsigned meetings = 0;
    bool begun = false;
    bool ended = false;
  };
  struct Warp {
    std::array<std::array<std::uint64_t, lanes>, 2> values;
    std::array<std::array<unsigned, lanes>, 2> calls;
  };

  Block(unsigned thread_count, std::function<void()> body)
      : threads_(thread_count), warps_(thread_count / lanes), body_(std::move(body)) {
    for (Warp& warp : warps_)
      for (auto& calls : warp.calls)
        calls.fill(0);
  }

  static void start() {
    Block& block = *current();
    block.body_();
    block.threads_[block.running_].ended = true;
    block.yield();
  }

  // Each thread in turn, up to where it waits: so the lanes of a warp wait for no more than a
  // round.
  void run_all() {
    for (Thread& thread : threads_) {
      thread.stack = std::make_unique_for_overwrite<char[]>(stack_size_bytes);
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.get();
      thread.context.uc_stack.ss_size = stack_size_bytes;
      thread.context.uc_link = nullptr;
      makecontext(&thread.context, start, 0);
    }
    bool running = true;
    while (running && !diverged_) {
      running = false;
      for (running_ = 0; running_ < threads_.size(); ++running_) {
        if (threads_[running_].ended) continue;
        running = true;
        threadIdx.x = running_;
        resume(threads_[running_]);
      }
    }
  }

  // Jumps take a few nanoseconds, where swapcontext() asks the kernel about signals.
  void resume(Thread& thread) {
    if (_setjmp(scheduler_) != 0) return;
    if (thread.begun) _longjmp(thread.place, 1);
    thread.begun = true;
    setcontext(&thread.context);
  }
  void yield() {
    if (_setjmp(threads_[running_].place) == 0) _longjmp(scheduler_, 1);
  }

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::function<void()> body_;
  jmp_buf scheduler_;
  unsigned running_ = 0;
  std::size_t arrived_ = 0;
  std::size_t barriers_ = 0;
  std::array<bool, 2> all_ = {};
  bool diverged_ = false;
};

template <typename T>
T lane_value(T value, unsigned call, unsigned lane) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  return static_cast<T>(Block::current()->meet_warp(static_cast<std::uint64_t>(value), call)[lane]);
}

}  // namespace nacre::engine::emulated

inline void __syncthreads() {
  nacre::engine::emulated::Block::current()->meet_block(true);
}
inline int __syncthreads_and(int value) {
  return nacre::engine::emulated::Block::current()->meet_block(value != 0);
}
inline void __syncwarp() {
  nacre::engine::emulated::Block::current()->meet_warp(0, 1);
}
inline std::uint32_t __ballot_sync(std::uint32_t /*lanes*/, int value) {
  const std::uint64_t* const values =
      nacre::engine::emulated::Block::current()->meet_warp(value != 0, 2);
  std::uint32_t ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    ballot |= static_cast<std::uint32_t>(values[lane]) << lane;
  return ballot;
}
template <typename T>
T __shfl_sync(std::uint32_t /*lanes*/, T value, int lane) {
  return nacre::engine::emulated::lane_value(value, 3, static_cast<unsigned>(lane) % 32);
}
template <typename T>
T __shfl_up_sync(std::uint32_t /*lanes*/, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return nacre::engine::emulated::lane_value(value, 4, lane < distance ? lane : lane - distance);
}
template <typename T>
T __shfl_down_sync(std::uint32_t /*lanes*/, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return nacre::engine::emulated::lane_value(value, 5,
                                             lane + distance > 31 ? lane : lane + distance);
}
template <typename T>
T __shfl_xor_sync(std::uint32_t /*lanes*/, T value, unsigned mask) {
  return nacre::engine::emulated::lane_value(value, 6, threadIdx.x % 32 ^ mask);
}

inline std::uint32_t atomicOr(std::uint32_t* word, std::uint32_t bits) {
  const std::uint32_t before = *word;
  *word |= bits;
  return before;
}

template <typename T>
T min(T a, T b) {
  return std::min(a, b);
}
template <typename T>
T max(T a, T b) {
  return std::max(a, b);
}
inline int __popc(std::uint32_t bits) {
  return std::popcount(bits);
}
inline int __popcll(std::uint64_t bits) {
  return std::popcount(bits);
}
inline int __clz(int bits) {
  return std::countl_zero(static_cast<std::uint32_t>(bits));
}
inline int __clzll(std::int64_t bits) {
  return std::countl_zero(static_cast<std::uint64_t>(bits));
}
inline int __ffs(int bits) {
  return bits == 0 ? 0 : std::countr_zero(static_cast<std::uint32_t>(bits)) + 1;
}
inline int __ffsll(std::int64_t bits) {
  return bits == 0 ? 0 : std::countr_zero(static_cast<std::uint64_t>(bits)) + 1;
}
inline std::uint32_t __funnelshift_r(std::uint32_t low, std::uint32_t high, std::uint32_t shift) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> (shift % 32));
}
inline std::uint32_t __byte_perm(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  std::uint32_t made = 0;
  for (unsigned i = 0; i < 4; ++i)
    made |= static_cast<std::uint32_t>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  return made;
}
