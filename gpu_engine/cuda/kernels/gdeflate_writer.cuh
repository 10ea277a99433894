// SPDX-License-Identifier: Apache-2.0
// What both encoders of GDeflate pages write with. One warp runs each part: Huffman codes from
// counts (CodeMaker), a block's description (Description), and a page's words (LaneWriter).
//
// CodeMaker makes the same sizes as codec/gdeflate/huffman_code.h, and their canonical code. The
// plain way sorts the symbols by count and joins the two smallest trees until one is left. The
// lanes share the sorting (each counts the keys below its own), the depths and the numbering.
// Joining is a chain, so lane 0 does it alone: two steps per symbol, some 20,000 cycles for 257.
//
// Description makes the header of codec/gdeflate/block_codes.h, item for item: the code sizes of
// both alphabets, cut into runs, under a code of their own (RFC 1951, 3.2.7).
//
// LaneWriter deals bits out to the 32 lanes of a page, one thread for each lane;
// codec/gdeflate/page_writer.h says where words lie. There, a lane's following word gets its place
// when the lane's open word is full. Here several warps write some rounds each. The bits of the
// rounds before are counted first, so a warp knows how many words already have a place. But it does
// not know the places of the two words (open and following) that each lane has at that moment. It
// keeps the contents of these words until the warp before it hands their places over.
#pragma once

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"
#include "gpu_engine/cuda/kernels/gdeflate_format.cuh"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda::gdeflate {

constexpr std::uint32_t symbol_bits = 9;

// Lower 16 bits: a code of up to 15 bits, its first bit lowest. Upper bits: its size. 0: no code.
constexpr std::uint32_t code_size_shift = 16;
using Code = std::uint32_t;

__device__ __forceinline__ std::uint32_t code_size(Code code) {
  return code >> code_size_shift;
}
__device__ __forceinline__ std::uint32_t code_bits(Code code) {
  return code & ((1u << code_size_shift) - 1);
}

// Scratch memory of one warp's CodeMaker, in shared memory.
struct CodeScratch {
  std::uint32_t keys[litlen_symbol_count_max];  // count above symbol; then the sums of the trees
  std::uint32_t sorted[litlen_symbol_count_max];
  std::uint16_t
      parents[litlen_symbol_count_max];  // of the trees, in the order in which they were made
  std::uint32_t counts_of_size[code_size_bits_max + 1];
  std::uint32_t next_code[code_size_bits_max + 1];
};

// Makes the codes of symbol_count symbols (at most 288) from their counts (below 2^22). counts and
// codes are in shared memory. If fewer than two symbols occur, the lowest of the other symbols get
// a code too.
class CodeMaker {
 public:
  __device__ CodeMaker(const std::uint32_t* counts, std::uint32_t symbol_count,
                       std::uint32_t size_max, Code* codes, CodeScratch& scratch)
      : counts_(counts),
        symbol_count_(symbol_count),
        size_max_(size_max),
        codes_(codes),
        scratch_(scratch) {}

  __device__ void run() {
    collect();
    sort();
    if (this_lane() == 0) join_trees();
    __syncwarp();
    count_sizes();
    spread_sizes();
    number();
  }

 private:
  __device__ void collect() {
    used_ = 0;
    for (std::uint32_t first = 0; first < symbol_count_; first += lane_count) {
      const std::uint32_t symbol = first + this_lane();
      const std::uint32_t count = symbol < symbol_count_ ? counts_[symbol] : 0;
      const std::uint32_t occurs = __ballot_sync(all_lanes, count != 0);
      if (count != 0)
        scratch_.keys[used_ + __popc(occurs & lanes_below())] = count << symbol_bits | symbol;
      used_ += __popc(occurs);
    }
    if (used_ < 2) {
      if (this_lane() == 0) {
        for (std::uint32_t symbol = 0, at = used_; at < 2; ++symbol)
          if (counts_[symbol] == 0) scratch_.keys[at++] = symbol;
      }
      used_ = 2;
    }
    __syncwarp();
  }

  __device__ void sort() {
    for (std::uint32_t i = this_lane(); i < used_; i += lane_count) {
      const std::uint32_t mine = scratch_.keys[i];
      std::uint32_t below = 0;
#pragma unroll 8
      for (std::uint32_t j = 0; j < used_; ++j)
        below += scratch_.keys[j] < mine;
      scratch_.sorted[below] = mine;
    }
    __syncwarp();
  }

  // Per lane. Leaves and trees are each in the order of their sums; of equal sums the leaf is
  // joined first. Both sums are read again for each child. A version that kept the tree's sum in a
  // register across the loop met a bug: optimised code of CUDA 13.0's ptxas for sm_80 and sm_90
  // lost the sum.
  __device__ void join_trees() {
    constexpr std::uint32_t none = 0xffffffffu;
    std::uint32_t* const sums = scratch_.keys;
    const std::uint32_t* const sorted = scratch_.sorted;
    const std::uint32_t used = used_;
    std::uint32_t leaf = 0;
    std::uint32_t tree = 0;
    for (std::uint32_t made = 0; made + 1 < used; ++made) {
      std::uint32_t sum = 0;
      for (int child = 0; child < 2; ++child) {
        const std::uint32_t leaf_sum = leaf < used ? sorted[leaf] >> symbol_bits : none;
        const std::uint32_t tree_sum = tree < made ? sums[tree] : none;
        if (tree_sum < leaf_sum) {
          sum += tree_sum;
          scratch_.parents[tree++] = static_cast<std::uint16_t>(made);
        } else {
          sum += leaf_sum;
          ++leaf;
        }
      }
      sums[made] = sum;
    }
  }

  // Counts the leaves at each depth: two for each inner node of the depth above, less the inner
  // nodes of this depth. Later nodes have later parents, so the inner nodes of a depth are
  // neighbours. Depths past the limit are cut to the limit; shorten() then restores a prefix code.
  __device__ void count_sizes() {
    if (this_lane() <= code_size_bits_max) scratch_.counts_of_size[this_lane()] = 0;
    __syncwarp();
    std::uint32_t end = used_ - 2;  // the inner nodes below this one are deeper; first the root
    std::uint32_t inner = 1;        // how many inner nodes the depth above has
    std::uint32_t depth = 1;
    for (; inner > 0; ++depth) {
      std::uint32_t inner_below = 0;
      for (std::uint32_t first = 0; first < end; first += lane_count) {
        const std::uint32_t node = first + this_lane();
        inner_below +=
            __popc(__ballot_sync(all_lanes, node < end && scratch_.parents[node] >= end));
      }
      if (this_lane() == 0)
        scratch_.counts_of_size[min(depth, size_max_)] += 2 * inner - inner_below;
      end -= inner_below;
      inner = inner_below;
    }
    if (depth - 1 > size_max_ && this_lane() == 0) shorten();
    __syncwarp();
  }

  // Per lane: makes the longest of the shorter codes longer, until the code space is not exceeded.
  __device__ void shorten() {
    std::uint32_t* const counts = scratch_.counts_of_size;
    std::uint32_t taken = 0;  // how much of the code space is used, in units of 2^-size_max
    for (std::uint32_t size = 1; size <= size_max_; ++size)
      taken += counts[size] << (size_max_ - size);
    for (; taken > 1u << size_max_; --taken) {
      --counts[size_max_];
      std::uint32_t size = size_max_ - 1;
      while (counts[size] == 0)
        --size;
      --counts[size];
      counts[size + 1] += 2;
    }
  }

  // The rarest symbols get the longest codes.
  __device__ void spread_sizes() {
    for (std::uint32_t symbol = this_lane(); symbol < symbol_count_; symbol += lane_count)
      codes_[symbol] = 0;
    __syncwarp();
    for (std::uint32_t i = this_lane(); i < used_; i += lane_count) {
      std::uint32_t size = size_max_;
      std::uint32_t place = i;
      while (place >= scratch_.counts_of_size[size])
        place -= scratch_.counts_of_size[size--];
      codes_[scratch_.sorted[i] % (1u << symbol_bits)] = size << code_size_shift;
    }
    if (this_lane() <= code_size_bits_max) {
      std::uint32_t next = 0;
      for (std::uint32_t size = 1; size < this_lane(); ++size)
        next += scratch_.counts_of_size[size] << (this_lane() - size);
      scratch_.next_code[this_lane()] = next;
    }
    __syncwarp();
  }

  __device__ void number() {
    for (std::uint32_t first = 0; first < symbol_count_; first += lane_count) {
      const std::uint32_t symbol = first + this_lane();
      const std::uint32_t size = symbol < symbol_count_ ? code_size(codes_[symbol]) : 0;
      const std::uint32_t peers = __match_any_sync(all_lanes, size);
      const std::uint32_t next = scratch_.next_code[size];
      __syncwarp();
      const std::uint32_t before = __popc(peers & lanes_below());
      if (size != 0) {
        codes_[symbol] |= __brev(next + before) >> (32 - size);
        if (before == 0) scratch_.next_code[size] = next + __popc(peers);
      }
      __syncwarp();
    }
  }

  const std::uint32_t* const counts_;
  const std::uint32_t symbol_count_;
  const std::uint32_t size_max_;
  Code* const codes_;
  CodeScratch& scratch_;
  std::uint32_t used_ = 0;
};

// The bits that a lane of a page gets at once: at most 31, the lowest first.
struct LaneBits {
  std::uint32_t bits;
  std::uint32_t count;
};

__device__ __forceinline__ LaneBits lane_bits(Code code) {
  return {code_bits(code), code_size(code)};
}

// The head of every block: one bit for the last block, two for the kind.
constexpr std::uint32_t head_bits = 3;
constexpr std::uint32_t stored_size_bits = 16;
constexpr std::uint32_t stored_size_max = 65535;

// RFC 1951, 3.2.6.
__device__ __forceinline__ Code fixed_litlen_code(std::uint32_t symbol) {
  const std::uint32_t size = symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
  const std::uint32_t code = symbol < 144   ? 0x30 + symbol
                             : symbol < 256 ? 0x190 + (symbol - 144)
                             : symbol < 280 ? symbol - 256
                                            : 0xc0 + (symbol - 280);
  return __brev(code) >> (32 - size) | size << code_size_shift;
}

// Lies in shared memory. All lanes of one warp call make(); then any lane may ask for its bits.
class Description {
 public:
  // litlen_codes (286) and distance_codes (32) are in shared memory.
  __device__ void make(const Code* litlen_codes, const Code* distance_codes, CodeScratch& scratch) {
    const std::uint32_t litlen_count =
        max(count_used(litlen_codes, litlen_symbol_count), first_length_symbol);
    const std::uint32_t distance_count = max(count_used(distance_codes, distance_symbol_count), 1u);
    if (this_lane() == 0) {
      litlen_count_ = litlen_count;
      distance_count_ = distance_count;
    }
    counts_[this_lane()] = 0;
    __syncwarp();
    make_items(litlen_codes, distance_codes, litlen_count, litlen_count + distance_count);
    CodeMaker(counts_, symbol_count, code_length_code_size_bits_max, codes_, scratch).run();

    const std::uint32_t lane = this_lane();
    const bool occurs = lane < symbol_count && codes_[code_length_symbol_at(lane)] != 0;
    const std::uint32_t code_count =
        max(lane_count - __clz(__ballot_sync(all_lanes, occurs)), code_count_min);
    std::uint32_t bits = 0;
    if (lane < symbol_count) bits = counts_[lane] * (code_size(codes_[lane]) + extra_bits(lane));
    bits = sum_of_lanes(bits);
    if (lane == 0) {
      code_count_ = code_count;
      bits_ = 2 * 5 + 4 + 3 * code_count + bits;
    }
    __syncwarp();
  }

  // The sum of the bits of all lanes, without the head.
  __device__ std::uint32_t bits() const { return bits_; }

  // Per lane: the number of rounds; the lane's bits in a round (lane 0's first begin with head).
  __device__ std::uint32_t round_count() const {
    return 1 + (item_count_ + lane_count - 1) / lane_count;
  }
  __device__ LaneBits at(std::uint32_t round, LaneBits head) const {
    const std::uint32_t lane = this_lane();
    if (round == 0) {
      if (lane >= code_count_) return {0, 0};
      const std::uint32_t size = code_size(codes_[code_length_symbol_at(lane)]);
      if (lane != 0) return {size, 3};
      const std::uint32_t counts = (litlen_count_ - first_length_symbol) |
                                   (distance_count_ - 1) << 5 |
                                   (code_count_ - code_count_min) << 10;
      return {head.bits | (counts | size << 14) << head.count, head.count + 17};
    }
    const std::uint32_t place = (round - 1) * lane_count + lane;
    if (place >= item_count_) return {0, 0};
    const std::uint32_t symbol = items_[place] & 0xff;
    const Code code = codes_[symbol];
    return {code_bits(code) | std::uint32_t{items_[place]} >> 8 << code_size(code),
            code_size(code) + extra_bits(symbol)};
  }

 private:
  static constexpr std::uint32_t symbol_count = code_length_symbol_count;
  static constexpr std::uint32_t code_count_min = 4;
  static constexpr std::uint32_t item_count_max = litlen_symbol_count + distance_symbol_count;
  static constexpr std::uint32_t chunk_count = (item_count_max + lane_count - 1) / lane_count;

  __device__ static std::uint32_t extra_bits(std::uint32_t symbol) {
    return symbol < code_length_repeat    ? 0
           : symbol == code_length_repeat ? 2
           : symbol == code_length_zeros  ? 3
                                          : 7;
  }

  // The index of the last symbol that has a code, plus one.
  __device__ static std::uint32_t count_used(const Code* codes, std::uint32_t count) {
    std::uint32_t used = 0;
    for (std::uint32_t first = 0; first < count; first += lane_count) {
      const std::uint32_t symbol = first + this_lane();
      const std::uint32_t occurs = __ballot_sync(all_lanes, symbol < count && codes[symbol] != 0);
      if (occurs != 0) used = first + lane_count - __clz(occurs);
    }
    return used;
  }

  // How many items the code for a run of equal lengths has.
  __device__ static std::uint32_t count_items(std::uint32_t length, std::uint32_t run) {
    const std::uint32_t unit = length == 0 ? 138 : 6;
    if (length != 0 && run < 4) return run;
    const std::uint32_t repeated = length == 0 ? run : run - 1;
    const std::uint32_t rest = repeated % unit;
    return (length == 0 ? 0 : 1) + repeated / unit + (rest >= 3 ? 1 : rest);
  }

  __device__ void add(std::uint32_t place, std::uint32_t symbol, std::uint32_t extra) {
    items_[place] = static_cast<std::uint16_t>(symbol | extra << 8);
    atomicAdd(&counts_[symbol], 1);
  }

  // Per lane: adds the items of a run of equal lengths.
  __device__ void add_run(std::uint32_t place, std::uint32_t length, std::uint32_t run) {
    if (length == 0) {
      for (; run >= 11; run -= min(run, 138u))
        add(place++, code_length_many_zeros, min(run, 138u) - 11);
      if (run >= 3) {
        add(place++, code_length_zeros, run - 3);
        run = 0;
      }
    } else if (run >= 4) {
      add(place++, length, 0);
      --run;
      for (; run >= 3; run -= min(run, 6u))
        add(place++, code_length_repeat, min(run, 6u) - 3);
    }
    for (; run > 0; --run)
      add(place++, length, 0);
  }

  __device__ void make_items(const Code* litlen_codes, const Code* distance_codes,
                             std::uint32_t litlen_count, std::uint32_t count) {
    const std::uint32_t lane = this_lane();
    const auto length_at = [&](std::uint32_t i) {
      return code_size(i < litlen_count ? litlen_codes[i] : distance_codes[i - litlen_count]);
    };
    const auto begins_run = [&](std::uint32_t i) {
      return i < count && (i == 0 || length_at(i) != length_at(i - 1));
    };
    for (std::uint32_t chunk = 0; chunk < chunk_count; ++chunk) {
      const std::uint32_t begins = __ballot_sync(all_lanes, begins_run(chunk * lane_count + lane));
      if (lane == 0) run_begins_[chunk] = begins;
    }
    __syncwarp();
    std::uint32_t place = 0;
    for (std::uint32_t chunk = 0; chunk * lane_count < count; ++chunk) {
      const std::uint32_t i = chunk * lane_count + lane;
      std::uint32_t run = 0;
      std::uint32_t length = 0;
      std::uint32_t items = 0;
      if (run_begins_[chunk] >> lane & 1) {
        // The begin of the next run. Two shifts, because a shift by 32 would be undefined.
        std::uint32_t behind = chunk;
        std::uint32_t begins = run_begins_[chunk] >> lane >> 1 << lane << 1;
        while (begins == 0 && ++behind < chunk_count)
          begins = run_begins_[behind];
        const std::uint32_t end =
            begins == 0 ? count
                        : behind * lane_count + static_cast<std::uint32_t>(__ffs(begins)) - 1;
        run = end - i;
        length = length_at(i);
        items = count_items(length, run);
      }
      const std::uint32_t to = place + inclusive_sum(items);
      if (run != 0) add_run(to - items, length, run);
      place = __shfl_sync(all_lanes, to, lane_count - 1);
    }
    if (lane == 0) item_count_ = place;
    __syncwarp();
  }

  std::uint16_t items_[item_count_max];  // low byte: symbol; high byte: value of its extra bits
  std::uint32_t run_begins_[chunk_count];
  std::uint32_t counts_[lane_count];
  Code codes_[lane_count];
  std::uint32_t item_count_;
  std::uint32_t litlen_count_;
  std::uint32_t distance_count_;
  std::uint32_t code_count_;
  std::uint32_t bits_;
};

constexpr std::uint32_t word_size = word_size_bytes;

// What a warp hands to the next one for each lane of a page. The default: at the page's begin.
struct OpenLane {
  std::uint32_t open = this_lane();       // index of the open word in the page
  std::uint32_t following = this_lane();  // index of the word after it
  std::uint32_t bits = 0;                 // of the open word
};

// How many words of the page a lane has after it got this many bits. Per lane.
__device__ __forceinline__ std::uint32_t words_of_lane(std::uint32_t bits) {
  return 1 + (bits + word_bits - 1) / word_bits;
}

class LaneWriter {
 public:
  // bits_before: how many bits this lane got from the warps before. out may have any alignment.
  __device__ LaneWriter(Byte* out, std::uint32_t bits_before)
      : out_(out),
        is_aligned_(reinterpret_cast<std::uintptr_t>(out) % word_size == 0),
        count_((bits_before + word_bits - 1) % word_bits + 1),
        next_(sum_of_lanes(words_of_lane(bits_before))) {}

  // Appends the bits of one round. All lanes call it together.
  __device__ __forceinline__ void put(LaneBits code) {
    const std::uint64_t bits = bits_ | std::uint64_t{code.bits} << count_;
    count_ += code.count;
    const bool is_over = count_ > word_bits;
    const std::uint32_t over = __ballot_sync(all_lanes, is_over);
    bits_ = static_cast<std::uint32_t>(bits);
    if (is_over) {
      close(bits_);
      following_ = next_ + __popc(over & lanes_below());
      bits_ = static_cast<std::uint32_t>(bits >> word_bits);
      count_ -= word_bits;
    }
    next_ += __popc(over);
  }

  // Per lane: stores the words that were kept, at the places that the warp before hands over.
  // Returns the state for the next warp.
  __device__ OpenLane take_over(OpenLane before) const {
    if (open_ == unknown_open) return {before.open, before.following, before.bits | bits_};
    store_word(before.open, kept_[0] | before.bits);
    if (open_ == unknown_following) return {before.following, following_, bits_};
    store_word(before.following, kept_[1]);
    return {open_, following_, bits_};
  }

  // Per lane: writes the last words of the page.
  __device__ void finish(OpenLane lane) const {
    store_word(lane.following, 0);
    store_word(lane.open, lane.bits);
  }

 private:
  static constexpr std::uint32_t unknown_open = 0xffffffffu;
  static constexpr std::uint32_t unknown_following = 0xfffffffeu;

  __device__ __forceinline__ void close(std::uint32_t word) {
    if (open_ == unknown_open)
      kept_[0] = word;
    else if (open_ == unknown_following)
      kept_[1] = word;
    else
      store_word(open_, word);
    open_ = following_;
  }

  __device__ __forceinline__ void store_word(std::uint32_t place, std::uint32_t word) const {
    Byte* const to = out_ + place * word_size;
    if (is_aligned_) {
      store(reinterpret_cast<std::uint32_t*>(to), word);
    } else {
      for (std::uint32_t i = 0; i < word_size; ++i)
        store(to + i, static_cast<Byte>(word >> 8 * i));
    }
  }

  Byte* const out_;
  const bool is_aligned_;
  std::uint32_t bits_ = 0;
  std::uint32_t count_;  // how many bits the open word has: 1 to 32
  std::uint32_t open_ = unknown_open;
  std::uint32_t following_ = unknown_following;
  std::uint32_t next_;  // how many words have a place
  std::uint32_t kept_[2] = {0, 0};
};

}  // namespace nacre::engine::cuda::gdeflate
