// SPDX-License-Identifier: Apache-2.0
// What a warp makes of 32 sequences that are read: the offsets that they repeat, and their bytes.
#pragma once

#include "gpu_engine/cuda/kernels/zstd_format.cuh"

namespace nacre::engine::cuda::zstd {

// What sequences do to the last three offsets: each is a value, or an earlier one of the three,
// less a number.
class OffsetMap {
 public:
  // The identity: all three offsets stay as they are.
  __device__ __forceinline__ OffsetMap() : to_{earlier(0, 0), earlier(1, 0), earlier(2, 0)} {}

  // Of one sequence. value: its offset's, as coded.
  __device__ __forceinline__ OffsetMap(std::uint32_t value, bool has_literals) : OffsetMap() {
    const std::uint32_t which = value - 1 + (has_literals ? 0 : 1);
    if (value > 3 || which >= 2) to_[2] = earlier(1, 0);
    if (value > 3 || which >= 1) to_[1] = earlier(0, 0);
    if (value > 3)
      to_[0] = value - 3;
    else if (which == 3)
      to_[0] = earlier(0, 1);
    else
      to_[0] = earlier(which, 0);
  }

  __device__ __forceinline__ OffsetMap from_lane_before(std::uint32_t distance) const {
    OffsetMap map;
    for (int i = 0; i < 3; ++i)
      map.to_[i] = __shfl_up_sync(all_lanes, to_[i], distance);
    return map;
  }
  __device__ __forceinline__ OffsetMap from_lane(std::uint32_t lane) const {
    OffsetMap map;
    for (int i = 0; i < 3; ++i)
      map.to_[i] = __shfl_sync(all_lanes, to_[i], static_cast<int>(lane));
    return map;
  }

  // What this map makes of the results of the one before it.
  __device__ __forceinline__ OffsetMap after(const OffsetMap& before) const {
    OffsetMap map;
    for (int i = 0; i < 3; ++i)
      map.to_[i] = before.resolve(to_[i]);
    return map;
  }
  __device__ __forceinline__ std::uint32_t resolve(std::uint32_t to) const {
    if ((to & earlier_flag) == 0) return to;
    const std::uint32_t which = to >> 24 & 3;
    const std::uint32_t of = which == 0 ? to_[0] : which == 1 ? to_[1] : to_[2];
    return of - (less_nothing - (to & 0xffffff));
  }

  __device__ __forceinline__ std::uint32_t operator[](int i) const { return to_[i]; }
  __device__ __forceinline__ static OffsetMap of(std::uint32_t first, std::uint32_t second,
                                                 std::uint32_t third) {
    OffsetMap map;
    map.to_[0] = first;
    map.to_[1] = second;
    map.to_[2] = third;
    return map;
  }

 private:
  // Numbers of a batch are subtracted from the lower 24 bits, which are at least 32 then.
  static constexpr std::uint32_t earlier_flag = 1u << 31;
  static constexpr std::uint32_t less_nothing = 1u << 16;
  __device__ __forceinline__ static std::uint32_t earlier(std::uint32_t which, std::uint32_t less) {
    return earlier_flag | which << 24 | (less_nothing - less);
  }

  std::uint32_t to_[3];
};

// Writes the bytes of a batch of sequences. All lanes call it together.
class BatchWriter {
 public:
  // out: where the batch begins; what is written already lies in front of it. literals: those of
  // the batch.
  __device__ __forceinline__ BatchWriter(Byte* out, const Byte* literals)
      : out_(out), literals_(literals) {}

  // Writes total bytes. Counted from the first of them: begin is where the lane's sequence begins,
  // match_begin where its match does, and to_literal is added to a place to get its literal's.
  __device__ __forceinline__ void write(std::uint32_t begin, std::uint32_t match_begin,
                                        std::uint32_t distance, std::uint32_t to_literal,
                                        std::uint32_t total) {
    const Batch batch = {begin, match_begin, distance, to_literal, total};
    std::uint32_t owners = all_lanes;  // sequences begun before this tile, minus one
    std::uint32_t tile = 0;
    for (; tile + 3 * lane_count < total; tile += 4 * lane_count) {
      Source sources[4];
      NACRE_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i)
        sources[i] = find_source(batch, tile + i * lane_count, owners);
      if (!take_from_each_other(sources[0], sources[1], sources[2], sources[3])) {
        move_all(out_ + tile, sources);
      } else {
        move_two(out_ + tile, sources[0], sources[1]);
        move_two(out_ + tile + 2 * lane_count, sources[2], sources[3]);
      }
    }
    for (; tile + lane_count < total; tile += 2 * lane_count) {
      const Source one = find_source(batch, tile, owners);
      const Source two = find_source(batch, tile + lane_count, owners);
      move_two(out_ + tile, one, two);
    }
    if (tile < total) move(out_ + tile, find_source(batch, tile, owners));
  }

 private:
  // A lane's sequence, as write() has it.
  struct Batch {
    std::uint32_t begin;
    std::uint32_t match_begin;
    std::uint32_t distance;
    std::uint32_t to_literal;
    std::uint32_t total;  // of all lanes
  };
  // Of a byte of a tile: where it lies.
  struct Source {
    const Byte* from;    // nullptr where the tile has no such byte
    std::uint32_t back;  // how far in front of its place, of a match; else all_lanes
  };

  __device__ __forceinline__ Source find_source(const Batch& batch, std::uint32_t tile,
                                                std::uint32_t& owners) const {
    const std::uint32_t place = batch.begin - tile;
    const std::uint32_t begins = or_of_lanes(place < lane_count ? 1u << place : 0);
    const int owner = static_cast<int>(owners + __popc(begins & lanes_up_to_here()));
    owners += __popc(begins);
    const std::uint32_t here = tile + this_lane();
    const bool literal = here < __shfl_sync(all_lanes, batch.match_begin, owner);
    const std::uint32_t back = __shfl_sync(all_lanes, batch.distance, owner);
    const std::uint32_t delta = __shfl_sync(all_lanes, batch.to_literal, owner);
    if (here >= batch.total) return {nullptr, all_lanes};
    if (literal) return {literals_ + (here + delta), all_lanes};
    return {out_ + here - back, back};
  }

  // Whether tiles that follow each other take bytes of each other or of themselves. Literals do not
  // count: no tile's literals lie where one before it writes.
  template <typename... Sources>
  __device__ __forceinline__ static bool take_from_each_other(const Sources&... sources) {
    std::uint32_t place = this_lane();
    bool takes = false;
    ((takes = takes || sources.back <= place, place += lane_count), ...);
    return __any_sync(all_lanes, takes);
  }

  // For tiles that take no bytes of each other. Only the last one may be shorter than a warp.
  __device__ __forceinline__ static void move_all(Byte* to, const Source (&sources)[4]) {
    Byte bytes[4] = {};
    NACRE_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      if (i < 3 || sources[i].from != nullptr) bytes[i] = load(sources[i].from);
    __syncwarp();
    NACRE_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      if (i < 3 || sources[i].from != nullptr) store(to + i * lane_count + this_lane(), bytes[i]);
    __syncwarp();
  }

  __device__ __forceinline__ static void move_two(Byte* to, const Source& one, const Source& two) {
    if (take_from_each_other(one, two)) {
      move(to, one);
      move(to + lane_count, two);
      return;
    }
    Byte byte_two{};
    const Byte byte_one = load(one.from);
    if (two.from != nullptr) byte_two = load(two.from);
    __syncwarp();
    store(to + this_lane(), byte_one);
    if (two.from != nullptr) store(to + lane_count + this_lane(), byte_two);
    __syncwarp();
  }

  __device__ __forceinline__ static void move(Byte* to, const Source& source) {
    const std::uint32_t lane = this_lane();
    const bool waits = source.back <= lane;
    std::uint32_t value = 0;
    if (source.from != nullptr && !waits) value = load(source.from);
    if (__any_sync(all_lanes, waits))
      value = take_from_lanes(value, waits ? lane - source.back : lane);
    __syncwarp();
    if (source.from != nullptr) store(to + lane, static_cast<Byte>(value));
    __syncwarp();
  }

  // The value of the lane to which giver leads, over any number of lanes.
  __device__ __forceinline__ static std::uint32_t take_from_lanes(std::uint32_t value,
                                                                  std::uint32_t giver) {
    for (;;) {
      const std::uint32_t next = __shfl_sync(all_lanes, giver, static_cast<int>(giver));
      if (!__any_sync(all_lanes, next != giver)) break;
      giver = next;
    }
    return __shfl_sync(all_lanes, value, static_cast<int>(giver));
  }

  Byte* const out_;
  const Byte* const literals_;
};

}  // namespace nacre::engine::cuda::zstd
