// SPDX-License-Identifier: Apache-2.0
// A warp on the host: 32 lanes, each on a stack of its own, that take turns. A lane runs until it
// meets the others; the order of the lanes is another one each time, so lanes that race with each
// other are found out.
#pragma once

#include <ucontext.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace nacre::engine {

class HostWarp {
 public:
  static constexpr std::uint32_t lane_count = 32;

  // Runs code(warp) in each lane and waits for all. Lanes must meet alike: what they meet for is
  // compared.
  explicit HostWarp(std::uint64_t seed) : random_(seed | 1) {}
  HostWarp(const HostWarp&) = delete;
  HostWarp& operator=(const HostWarp&) = delete;

  // A lane's view of its warp: the functions of DeviceWarp (gdeflate_warp.cuh).
  class Lane;
  void run(const std::function<void(Lane)>& code);

  // Whether all lanes met for the same, always.
  bool met_alike() const { return met_alike_; }

 private:
  enum class Meeting : std::uint32_t { ballot, shuffle, shuffle_up, alike, bit_or, sync, end };

  static constexpr std::size_t stack_size_bytes = 128 * 1024;

  static void enter(unsigned high, unsigned low);
  const std::array<std::uint32_t, lane_count>& meet(std::uint32_t lane, Meeting meeting,
                                                    std::uint32_t value);

  struct LaneState {
    ucontext_t context;
    std::vector<char> stack;
    Meeting meeting{};
    std::uint32_t turn = 0;  // which of values it writes next
  };
  std::array<LaneState, lane_count> lanes_;
  std::array<std::array<std::uint32_t, lane_count>, 2> values_{};
  ucontext_t caller_;
  std::uint32_t current_ = 0;
  const std::function<void(Lane)>* code_ = nullptr;
  std::uint64_t random_;
  bool met_alike_ = true;
};

class HostWarp::Lane {
 public:
  Lane(HostWarp& warp, std::uint32_t lane) : warp_(&warp), lane_(lane) {}

  std::uint32_t lane() const { return lane_; }
  std::uint32_t ballot(bool vote) const {
    std::uint32_t votes = 0;
    const auto& values = warp_->meet(lane_, Meeting::ballot, vote);
    for (std::uint32_t i = 0; i < lane_count; ++i)
      votes |= values[i] << i;
    return votes;
  }
  std::uint32_t shuffle(std::uint32_t value, std::uint32_t from) const {
    return warp_->meet(lane_, Meeting::shuffle, value)[from % lane_count];
  }
  std::uint32_t shuffle_up(std::uint32_t value, std::uint32_t by) const {
    return warp_->meet(lane_, Meeting::shuffle_up, value)[lane_ < by ? lane_ : lane_ - by];
  }
  std::uint32_t lanes_alike(std::uint32_t value) const {
    std::uint32_t alike = 0;
    const auto& values = warp_->meet(lane_, Meeting::alike, value);
    for (std::uint32_t i = 0; i < lane_count; ++i)
      alike |= std::uint32_t{values[i] == value} << i;
    return alike;
  }
  std::uint32_t or_of_lanes(std::uint32_t bits) const {
    std::uint32_t all = 0;
    for (const std::uint32_t value : warp_->meet(lane_, Meeting::bit_or, bits))
      all |= value;
    return all;
  }
  void sync() const { warp_->meet(lane_, Meeting::sync, 0); }

  static std::uint32_t popcount(std::uint32_t bits) {
    return static_cast<std::uint32_t>(std::popcount(bits));
  }
  static std::uint32_t lowest(std::uint32_t bits) {
    return static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  static std::uint32_t highest(std::uint32_t bits) {
    return static_cast<std::uint32_t>(31 - std::countl_zero(bits));
  }
  static std::uint32_t reverse(std::uint32_t bits) {
    std::uint32_t reversed = 0;
    for (std::uint32_t i = 0; i < 32; ++i)
      reversed |= (bits >> i & 1) << (31 - i);
    return reversed;
  }
  template <typename T>
  static T load(const T* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <typename T>
  static void store(T* to, T value) {
    *to = value;
  }

 private:
  HostWarp* warp_;
  std::uint32_t lane_;
};

}  // namespace nacre::engine
