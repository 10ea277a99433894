// SPDX-License-Identifier: Apache-2.0
// A warp that cuts a part of a piece into the items of a GDeflate page: literals and matches.
//
// It looks for matches as the encoder of LZ4 blocks does (lz4_encoder.cuh): windows of 32
// positions, a lane a position, a hash table of positions in shared memory, and then a walk over
// the matches from left to right. But it writes items, so literals cost it nothing, and matches may
// reach to the piece's end and have any size.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_format.cuh"
#include "gpu_engine/cuda/kernels/lz4_warp.cuh"

namespace nacre::engine::cuda::gdeflate {

using lz4::this_lane;

// A literal: its byte. A match: this bit and its size; its distance stands in a list of their own.
using PartItem = std::uint16_t;
constexpr PartItem match_item = 0x8000;
constexpr std::uint32_t item_size_max = match_item - 1;  // longer than a part

constexpr std::uint32_t found_size_min = 4;    // the format has 3, which rarely pays
constexpr std::uint32_t match_free_tail = 12;  // what is read ahead
constexpr std::uint32_t compared_size = 8;     // of a match, before any is chosen
constexpr std::uint32_t lookahead = 3;
constexpr std::uint32_t window_matches_max = lane_count / found_size_min;

// After 1 << patience_bits windows without a match the next one is skipped, then two, and so on.
constexpr std::uint32_t patience_bits = 4;

constexpr std::uint32_t history_size = 16384;

// What a warp hands over.
struct PartItems {
  std::uint32_t items;    // count
  std::uint32_t matches;  // of them
};

template <std::uint32_t entry_count>
class Parser {
 public:
  // Cuts in[from … size). Matches reach back to in[0]. items: room for size − from of them;
  // distances: for a quarter of that. The table is all zeros.
  __device__ Parser(const Byte* in, std::uint32_t from, std::uint32_t size, PartItem* items,
                    std::uint16_t* distances, std::uint32_t* table)
      : in_(in),
        words_(in),
        size_(size),
        items_(items),
        distances_(distances),
        table_(table),
        begin_(from),
        literals_from_(from) {}

  // Enters what lies before the part into the table.
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

  __device__ PartItems run() {
    std::uint32_t misses = 0;
    if (begin_ + match_free_tail <= size_) read_window();
    while (begin_ + match_free_tail <= size_) {
      find_matches();
      if (__ballot_sync(all_lanes, size_here_ != 0) != 0) {
        misses = 0;
        add_sequences();
      } else {
        begin_ += lane_count * (1 + (misses++ >> patience_bits));
        read_window();
      }
    }
    add_literals(item_count_, literals_from_, size_);
    return {item_count_ + size_ - literals_from_, match_count_};
  }

 private:
  __device__ __forceinline__ static std::uint32_t slot_of(std::uint32_t bytes) {
    return __umulhi(bytes * 2654435761u, entry_count);
  }

  // A lane's own: puts a position into one half of a word of two entries. Of lanes that meet in a
  // word one wins, and an entry may fall back to what it was: any earlier position will do, for
  // what lies there is compared. MATCH.ANY would tell the lanes apart, and costs a tenth of the
  // speed.
  __device__ __forceinline__ static void enter(std::uint32_t* entries, std::uint32_t slot,
                                               std::uint32_t both, std::uint32_t at) {
    atomicExch(entries, slot % 2 == 0 ? (both & 0xffff0000) | at : (both & 0xffff) | at << 16);
  }

  // A lane's own: what it compares. Where no match may begin any more, something else.
  __device__ __forceinline__ void read_window() {
    fetch(min(begin_ + this_lane(), size_ - match_free_tail), before_, bytes_, after_);
  }

  // A lane's own match at its position: size_here_ (0: none, at most compared_size),
  // distance_here_, and how many bytes before it match too. Enters the window's positions into the
  // table.
  __device__ __forceinline__ void find_matches() {
    const std::uint32_t here = begin_ + this_lane();
    const bool looks = here + match_free_tail <= size_;
    size_here_ = 0;
    const std::uint32_t slot = slot_of(bytes_);
    std::uint32_t* const entries = table_ + slot / 2;
    const std::uint32_t both = *entries;
    __syncwarp();
    if (looks) enter(entries, slot, both, here);
    __syncwarp();
    std::uint32_t found = slot % 2 == 0 ? both & 0xffff : both >> 16;
    if (!looks || found >= here) return;
    // What repeats after one, two or four bytes lies too near to be in the table.
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

  // A lane's own: bytes at − 4 … at + 7 (before is arbitrary where at < 4).
  __device__ __forceinline__ void fetch(std::uint32_t at, std::uint32_t& before,
                                        std::uint32_t& bytes, std::uint32_t& after) const {
    const std::uint32_t place = at + words_.shift;
    const std::uint32_t* const words = words_.words + place / 4;
    const std::uint32_t w0 = lz4::load(words - (place < 4 ? 0 : 1)), w1 = lz4::load(words),
                        w2 = lz4::load(words + 1), w3 = lz4::load(words + 2);
    const std::uint32_t bits = place % 4 * 8;
    before = __funnelshift_r(w0, w1, bits);
    bytes = __funnelshift_r(w1, w2, bits);
    after = __funnelshift_r(w2, w3, bits);
  }

  // Chooses among the lanes' matches and adds them with the literals before them. Goes on to the
  // next window and reads it.
  __device__ __forceinline__ void add_sequences() {
    const std::uint32_t lane = this_lane();
    const std::uint32_t begin = begin_;
    const Byte literal = static_cast<Byte>(bytes_);
    std::uint32_t longest_behind = 0;
    for (std::uint32_t step = 1; step <= lookahead; ++step)
      longest_behind = max(longest_behind, __shfl_down_sync(all_lanes, size_here_, step));
    const bool wanted = size_here_ != 0 && longest_behind <= size_here_;
    std::uint32_t pending = __ballot_sync(all_lanes, wanted);
    const std::uint32_t packed = distance_here_ | size_here_ << 16 | back_here_ << 24;

    std::uint32_t chosen = 0;  // a bit for each lane whose match is taken
    std::uint32_t count = 0;
    std::uint32_t from = 0;  // lane k: of the k-th sequence's match
    std::uint32_t end = 0;
    do {
      const std::uint32_t at = __ffs(pending) - 1;
      const std::uint32_t match = __shfl_sync(all_lanes, packed, at);
      const std::uint32_t match_size = match >> 16 & 0xff;
      std::uint32_t match_end = begin + at + match_size;
      if (match_size == compared_size) match_end += extra_size(match_end, match & 0xffff);
      if (lane == count) {
        from = at;
        end = match_end;
      }
      chosen |= 1u << at;
      count++;
      const std::uint32_t advance = match_end - begin;
      begin_ = begin + max(advance, lane_count);
      pending = advance >= lane_count ? 0 : pending & all_lanes << advance;
    } while (pending != 0);
    read_window();

    const std::uint32_t match = __shfl_sync(all_lanes, packed, from);
    end = min(end, size_);
    from += begin;
    std::uint32_t literals_from = __shfl_up_sync(all_lanes, end, 1);
    if (lane == 0) literals_from = literals_from_;
    from -= min(match >> 24, from - literals_from);
    const std::uint32_t added = lane < count ? from - literals_from + 1 : 0;
    std::uint32_t place = added;
    for (std::uint32_t step = 1; step < window_matches_max; step *= 2) {
      const std::uint32_t before = __shfl_up_sync(all_lanes, place, step);
      if (lane >= step) place += before;
    }
    const std::uint32_t total = __shfl_sync(all_lanes, place, window_matches_max - 1);
    place += item_count_ - added;
    if (lane < count) {
      lz4::store(items_ + (place + added - 1), static_cast<PartItem>(match_item | (end - from)));
      lz4::store(distances_ + (match_count_ + lane), static_cast<std::uint16_t>(match & 0xffff));
    }

    // A lane's byte is a literal before the first match that begins behind it, or of none.
    const std::uint32_t here = begin + lane;
    const std::uint32_t owner = __popc(chosen & (all_lanes >> (lane_count - 1 - lane)));
    const std::uint32_t owner_end = __shfl_sync(all_lanes, from, owner);
    const std::uint32_t owner_from = __shfl_sync(all_lanes, literals_from, owner);
    const std::uint32_t owner_to = __shfl_sync(all_lanes, place - literals_from, owner);
    if (owner < count && here >= owner_from && here < owner_end)
      lz4::store(items_ + (owner_to + here), static_cast<PartItem>(literal));
    if (literals_from_ < begin)
      add_literals(item_count_, literals_from_, min(__shfl_sync(all_lanes, from, 0), begin));
    item_count_ += total;
    match_count_ += count;
    literals_from_ = __shfl_sync(all_lanes, end, count - 1);
  }

  __device__ __forceinline__ void add_literals(std::uint32_t place, std::uint32_t from,
                                               std::uint32_t to) const {
    for (std::uint32_t at = from + this_lane(); at < to; at += lane_count)
      lz4::store(items_ + (place + at - from), static_cast<PartItem>(lz4::load(in_ + at)));
  }

  // How many bytes from at on equal those at the distance before them; may count bytes that have to
  // be literals. 32 bytes, then 128 a step.
  __device__ __forceinline__ std::uint32_t extra_size(std::uint32_t at,
                                                      std::uint32_t distance) const {
    std::uint32_t here = at + this_lane();
    const bool same = here < size_ && lz4::load(in_ + here) == lz4::load(in_ + (here - distance));
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
               lz4::load(in_ + (here + equal)) == lz4::load(in_ + (here + equal - distance)))
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
  const lz4::Words words_;
  const std::uint32_t size_;
  PartItem* const items_;
  std::uint16_t* const distances_;
  std::uint32_t* const table_;  // two entries a word, the even one in the low half

  std::uint32_t begin_;          // of the window
  std::uint32_t literals_from_;  // what lies before is in the items
  std::uint32_t item_count_ = 0;
  std::uint32_t match_count_ = 0;

  // At this lane's position.
  std::uint32_t before_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t after_ = 0;
  std::uint32_t size_here_ = 0;
  std::uint32_t back_here_ = 0;
  std::uint32_t distance_here_ = 0;
};

}  // namespace nacre::engine::cuda::gdeflate
