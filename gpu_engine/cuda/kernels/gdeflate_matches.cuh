// SPDX-License-Identifier: Apache-2.0
// Copies the matches of a round, which may take bytes of each other and of themselves.
//
// The bytes from the round's first match to the end of its last, literals between them included,
// are handled 32 at a time, a lane a byte: it finds its match by counting those that begin up to
// it, and has the byte from what is written, or, where the match reaches into the 32 themselves,
// from the lane that leads to it (pointer doubling). So no match is a special case.
//
// Copying at once all matches whose sources are written, and the others again (Gompresso's rounds,
// Sitaridis et al., ICPP 2016), took up to three times as long: repetitive pieces need many rounds.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_codes.cuh"

namespace nacre::engine::cuda::gdeflate {

// A lane's own.
struct Match {
  std::uint32_t to;
  std::uint32_t size;      // more than 0
  std::uint32_t distance;  // 1 … to
};

template <typename Warp>
class MatchCopier {
 public:
  // out: a piece's plain bytes.
  NACRE_LANE_CODE MatchCopier(Warp warp, PageMemory& memory, Byte* out)
      : warp_(warp), memory_(memory), out_(out) {}

  // The matches of the lanes in which, which are not none. The literals between them are stored;
  // what is loaded behind this call finds the matches stored.
  NACRE_LANE_CODE void copy(std::uint32_t which, const Match& match) {
    const bool has_match = (which >> warp_.lane() & 1) != 0;
    const std::uint32_t begin = warp_.shuffle(match.to, warp_.lowest(which));
    end_ = warp_.shuffle(match.to + match.size, warp_.highest(which));
    if (has_match)
      memory_.matches[warp_.popcount(which & lanes_before(warp_))] = {
          match.to | match.distance << 16, match.size};
    warp_.sync();
    const std::uint32_t to = has_match ? match.to : all_lanes;
    std::uint32_t owners = all_lanes;  // begun before this tile, less one
    std::uint32_t tile = begin;
    for (; tile + lane_count < end_; tile += 2 * lane_count) {
      const Source one = find_source(to, tile, owners);
      const Source two = find_source(to, tile + lane_count, owners);
      if (warp_.ballot((one.is_match && one.distance <= warp_.lane()) ||
                       (two.is_match && two.distance <= lane_count + warp_.lane())) == 0) {
        move_both(tile, one, two);
      } else {
        move(tile, one);
        warp_.sync();
        move(tile + lane_count, two);
      }
      warp_.sync();
    }
    if (tile < end_) {
      move(tile, find_source(to, tile, owners));
      warp_.sync();
    }
  }

 private:
  struct Source {
    bool is_match;  // else: a literal, or no byte
    std::uint32_t distance;
  };

  NACRE_LANE_CODE Source find_source(std::uint32_t to, std::uint32_t tile,
                                     std::uint32_t& owners) const {
    const std::uint32_t place = to - tile;
    const std::uint32_t begins = warp_.or_of_lanes(place < lane_count ? 1u << place : 0);
    const std::uint32_t owner = owners + warp_.popcount(begins & lanes_up_to_here(warp_));
    owners += warp_.popcount(begins);
    const PlacedMatch match = memory_.matches[owner];
    const std::uint32_t index = tile + warp_.lane() - (match.to_and_distance & 0xffff);
    return {index < match.size, match.to_and_distance >> 16};
  }

  // Of two tiles that take no bytes of each other or of themselves.
  NACRE_LANE_CODE void move_both(std::uint32_t tile, Source one, Source two) const {
    Byte* const to = out_ + tile + warp_.lane();
    Byte byte_one{};
    Byte byte_two{};
    if (one.is_match) byte_one = warp_.load(to - one.distance);
    if (two.is_match) byte_two = warp_.load(to + lane_count - two.distance);
    if (one.is_match) warp_.store(to, byte_one);
    if (two.is_match) warp_.store(to + lane_count, byte_two);
  }

  NACRE_LANE_CODE void move(std::uint32_t tile, Source source) const {
    const std::uint32_t lane = warp_.lane();
    const bool waits = source.is_match && source.distance <= lane;
    const bool exists = tile + lane < end_;
    Byte* const to = out_ + tile + lane;
    std::uint32_t value = 0;
    if (exists && !waits) value = warp_.load(to - (source.is_match ? source.distance : 0));
    if (warp_.ballot(waits) != 0)
      value = take_from_lanes(value, waits ? lane - source.distance : lane);
    if (source.is_match) warp_.store(to, static_cast<Byte>(value));
  }

  // The value of the lane that giver leads to, over any number of lanes.
  NACRE_LANE_CODE std::uint32_t take_from_lanes(std::uint32_t value, std::uint32_t giver) const {
    for (;;) {
      const std::uint32_t next = warp_.shuffle(giver, giver);
      if (warp_.ballot(next != giver) == 0) return warp_.shuffle(value, giver);
      giver = next;
    }
  }

  Warp warp_;
  PageMemory& memory_;
  Byte* const out_;
  std::uint32_t end_ = 0;  // of the matches
};

}  // namespace nacre::engine::cuda::gdeflate
