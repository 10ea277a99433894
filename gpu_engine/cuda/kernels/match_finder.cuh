// SPDX-License-Identifier: Apache-2.0
// A warp finds the matches in a part of a piece, for LZ4 blocks and GDeflate pages.
//
// The plain loop, as in a fast encoder with one thread:
//
//   for (i = begin; i + 12 <= size;) {
//     found = table[hash(4 bytes at i)], table[hash] = i;
//     if the 4 bytes at found are those at i:
//       extend the match in both directions, choose it, i = its end;
//     else i += 1 (or more, after many misses);
//   }
//
// Each step waits for a look-up, a load and a comparison. The steps from there:
//
// 1. A window of 32 positions, one per lane. Every lane looks up its four bytes in the table, which
//    lies in shared memory, and compares the bytes at the position that it finds: eight forward and
//    up to four backward. Positions less than a window back are not in the table yet. So the lane
//    also compares its bytes with those one, two and four bytes before.
// 2. The warp goes over the matches from left to right. It drops a match when one of the next three
//    positions has a longer one. It extends a match backward by the bytes that were compared, and
//    forward past them. Lane k keeps the window's k-th match.
// 3. The next window begins at the end of the last match, or 32 positions on. Its bytes are loaded
//    before the caller writes the matches of this window.
//
// A window of Silesia's seven files gives 3.1 matches and advances 47 bytes.
#pragma once

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"
#include "gpu_engine/cuda/kernels/lz4_format.cuh"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {

constexpr std::uint32_t found_size_min = 4;
constexpr std::uint32_t compared_size = 8;  // bytes compared before a match is chosen
constexpr std::uint32_t lookahead = 3;      // 2 and 4 were tried: both make the code larger
constexpr std::uint32_t window_matches_max = lane_count / found_size_min;

// After 1 << patience_bits windows in a row without a match, one window is skipped after each;
// after twice as many two windows, and so on.
constexpr std::uint32_t patience_bits = 4;

// The number of bytes before a part that learn_history() enters into the table. A table of some
// thousand entries would hardly keep older positions.
constexpr std::uint32_t history_size = 16384;

// The matches chosen in a window. lanes and count are the same in all lanes; in the other fields
// lane k has the k-th match. Places are offsets in the piece.
struct ChosenMatches {
  std::uint32_t lanes;  // mask of the lanes whose match was chosen
  std::uint32_t count;
  std::uint32_t literals_from;  // where the literals before the match begin
  std::uint32_t from;           // where the match begins
  std::uint32_t end;
  std::uint32_t distance;
};

// The calls: learn_history() if there are bytes before the part, start(), and then find() and
// choose() in turn while find() returns true. All lanes of a warp call them together.
template <std::uint32_t entry_count>
class MatchFinder {
 public:
  // Finds matches that begin in in[from … size) and may copy from in[0] on. None begins less than
  // match_free_tail bytes before `size`, since bytes are read ahead. table: entry_count zeros of 16
  // bits, two in each word.
  __device__ MatchFinder(const Byte* in, std::uint32_t from, std::uint32_t size,
                         std::uint32_t* table)
      : in_(in), words_(in), size_(size), table_(table), begin_(from), literals_from_(from) {}

  // Enters the bytes before the part into the table.
  __device__ void learn_history() {
    constexpr std::uint32_t rows = 4;
    const std::uint32_t last = begin_ - found_size_min;
    for (std::uint32_t tile = begin_ - min(begin_, history_size); tile < begin_;
         tile += rows * lane_count) {
      std::uint32_t bytes[rows];
#pragma unroll
      for (std::uint32_t row = 0; row < rows; ++row)
        bytes[row] = words_.at(min(tile + row * lane_count + this_lane(), last));
#pragma unroll
      for (std::uint32_t row = 0; row < rows; ++row) {
        const std::uint32_t slot = slot_of(bytes[row]);
        std::uint32_t* const entries = table_ + slot / 2;
        const std::uint32_t both = *entries;
        __syncwarp();
        enter(entries, slot, both, min(tile + row * lane_count + this_lane(), last));
        __syncwarp();
      }
    }
  }

  // Called before the first find().
  __device__ __forceinline__ void start() {
    if (begin_ + lz4::match_free_tail <= size_) read_window();
  }

  // Moves on to a window that has a match. Returns false when no window is left.
  __device__ __forceinline__ bool find() {
    while (begin_ + lz4::match_free_tail <= size_) {
      look_up();
      if (__ballot_sync(all_lanes, size_here_ != 0) != 0) {
        misses_ = 0;
        return true;
      }
      begin_ += lane_count * (1 + (misses_++ >> patience_bits));
      read_window();
    }
    return false;
  }

  // After find(): where the window begins, and the byte at this lane's position. Per lane.
  __device__ __forceinline__ std::uint32_t begin() const {
    return begin_;
  }
  __device__ __forceinline__ Byte byte_here() const {
    return static_cast<Byte>(bytes_);
  }
  // The end of the last match that was chosen. Per lane.
  __device__ __forceinline__ std::uint32_t literals_from() const {
    return literals_from_;
  }

  // Chooses from the lanes' matches, from left to right, and cuts them at end_max. Then moves to
  // the next window and reads it.
  __device__ __forceinline__ ChosenMatches choose(std::uint32_t end_max) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t begin = begin_;
    std::uint32_t longest_behind = 0;
    for (std::uint32_t step = 1; step <= lookahead; ++step)
      longest_behind = max(longest_behind, __shfl_down_sync(all_lanes, size_here_, step));
    const bool wanted = size_here_ != 0 && longest_behind <= size_here_;
    std::uint32_t pending = __ballot_sync(all_lanes, wanted);
    const std::uint32_t packed = distance_here_ | size_here_ << 16 | back_here_ << 24;

    ChosenMatches found = {0, 0, 0, 0, 0, 0};
    do {
      const std::uint32_t at = __ffs(pending) - 1;
      const std::uint32_t match = __shfl_sync(all_lanes, packed, at);
      const std::uint32_t match_size = match >> 16 & 0xff;
      std::uint32_t match_end = begin + at + match_size;
      if (match_size == compared_size) match_end += extra_size(match_end, match & 0xffff);
      if (lane == found.count) {
        found.from = at;
        found.end = match_end;
      }
      found.lanes |= 1u << at;
      found.count++;
      const std::uint32_t advance = match_end - begin;
      begin_ = begin + max(advance, lane_count);
      pending = advance >= lane_count ? 0 : pending & all_lanes << advance;
    } while (pending != 0);
    read_window();

    const std::uint32_t match = __shfl_sync(all_lanes, packed, found.from);
    found.distance = match & 0xffff;
    found.end = min(found.end, end_max);
    found.from += begin;
    found.literals_from = __shfl_up_sync(all_lanes, found.end, 1);
    if (lane == 0) found.literals_from = literals_from_;
    found.from -= min(match >> 24, found.from - found.literals_from);
    literals_from_ = __shfl_sync(all_lanes, found.end, found.count - 1);
    return found;
  }

 private:
  __device__ __forceinline__ static std::uint32_t slot_of(std::uint32_t bytes) {
    return __umulhi(bytes * 2654435761u, entry_count);
  }

  // Per lane: puts a position into one half of a word of two entries; both: the word's old value.
  // If several lanes write to a word, one of them wins (which one is not determined), and the other
  // half may get its old value back. That is harmless: any earlier position will do, since the
  // bytes there are compared. MATCH.ANY could serialise the lanes, and costs a tenth of the speed.
  __device__ __forceinline__ static void enter(std::uint32_t* entries, std::uint32_t slot,
                                               std::uint32_t both, std::uint32_t at) {
    atomicExch(entries, slot % 2 == 0 ? (both & 0xffff0000) | at : (both & 0xffff) | at << 16);
  }

  // Per lane: reads the bytes around its position. If no match may begin there, it reads those at
  // the last position where one may.
  __device__ __forceinline__ void read_window() {
    fetch(min(begin_ + this_lane(), size_ - lz4::match_free_tail), before_, bytes_, after_);
  }

  // Finds a match at each lane's position: size_here_ (0: none; at most compared_size),
  // distance_here_, and back_here_, the count of bytes before it that match too. Enters the
  // positions of the window into the table.
  __device__ __forceinline__ void look_up() {
    const std::uint32_t here = begin_ + this_lane();
    const bool looks = here + lz4::match_free_tail <= size_;
    size_here_ = 0;
    const std::uint32_t slot = slot_of(bytes_);
    std::uint32_t* const entries = table_ + slot / 2;
    const std::uint32_t both = *entries;
    __syncwarp();
    if (looks) enter(entries, slot, both, here);
    __syncwarp();
    std::uint32_t found = slot % 2 == 0 ? both & 0xffff : both >> 16;
    if (!looks || found >= here) return;
    // Bytes that repeat those one, two or four positions before: too near to be in the table.
    if (begin_ != 0) {
      if (before_ == bytes_) found = here - 4;
      if (__funnelshift_r(before_, bytes_, 16) == bytes_) found = here - 2;
      if (__funnelshift_r(before_, bytes_, 24) == bytes_) found = here - 1;
    }
    std::uint32_t found_before, found_bytes, found_after;
    fetch(found, found_before, found_bytes, found_after);
    if (found_bytes == bytes_) {
      const std::uint32_t differs = after_ ^ found_after;
      size_here_ = differs == 0 ? compared_size : 4 + (__ffs(differs) - 1) / 8;
      back_here_ = min(static_cast<std::uint32_t>(__clz(before_ ^ found_before)) / 8, found);
      distance_here_ = here - found;
    }
  }

  // Per lane: loads bytes at − 4 … at + 7 (before is undefined if at < 4).
  __device__ __forceinline__ void fetch(std::uint32_t at, std::uint32_t& before,
                                        std::uint32_t& bytes, std::uint32_t& after) const {
    const std::uint32_t place = at + words_.shift;
    const std::uint32_t* const words = words_.words + place / 4;
    const std::uint32_t w0 = load(words - (place < 4 ? 0 : 1)), w1 = load(words),
                        w2 = load(words + 1), w3 = load(words + 2);
    const std::uint32_t bits = place % 4 * 8;
    before = __funnelshift_r(w0, w1, bits);
    bytes = __funnelshift_r(w1, w2, bits);
    after = __funnelshift_r(w2, w3, bits);
  }

  // How many bytes from `at` on equal those `distance` before them. Counts up to the end of the
  // part, also where a format demands literals. Compares 32 bytes first, then 128 a step.
  __device__ __forceinline__ std::uint32_t extra_size(std::uint32_t at,
                                                      std::uint32_t distance) const {
    std::uint32_t here = at + this_lane();
    const bool same = here < size_ && load(in_ + here) == load(in_ + (here - distance));
    std::uint32_t ends = __ballot_sync(all_lanes, !same);
    if (ends != 0) return __ffs(ends) - 1;
    for (std::uint32_t step = at + lane_count; step < size_; step += 4 * lane_count) {
      here = step + 4 * this_lane();
      std::uint32_t equal = 0;
      if (here + 8 <= size_) {
        const std::uint32_t differs = words_.at(here) ^ words_.at(here - distance);
        equal = differs == 0 ? 4 : (__ffs(differs) - 1) / 8;
      } else {
        while (equal < 4 && here + equal < size_ &&
               load(in_ + (here + equal)) == load(in_ + (here + equal - distance)))
          equal++;
      }
      ends = __ballot_sync(all_lanes, equal < 4);
      if (ends != 0) {
        const std::uint32_t last = __ffs(ends) - 1;
        return step + 4 * last + __shfl_sync(all_lanes, equal, last) - at;
      }
    }
    return size_ - at;
  }

  const Byte* const in_;
  const Words words_;
  const std::uint32_t size_;
  std::uint32_t* const table_;  // two entries a word, the even one in the low half

  std::uint32_t begin_;  // of the window
  std::uint32_t literals_from_;
  std::uint32_t misses_ = 0;  // how many windows in a row had no match

  // At this lane's position.
  std::uint32_t before_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t after_ = 0;
  std::uint32_t size_here_ = 0;
  std::uint32_t back_here_ = 0;
  std::uint32_t distance_here_ = 0;
};

}  // namespace nacre::engine::cuda
