// SPDX-License-Identifier: Apache-2.0
// A warp that describes a block's codes as RFC 1951, 3.2.7 has it: the lengths of both alphabets
// cut into runs, under a code of their own. Item for item what codec/gdeflate/block_codes.h writes.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_make_code.cuh"

namespace nacre::engine::cuda::gdeflate {

// What a lane of a page gets at once: at most 31 bits, the lowest first.
struct LaneBits {
  std::uint32_t bits;
  std::uint32_t count;
};

__device__ __forceinline__ LaneBits lane_bits(Code code) {
  return {code_bits(code), code_size(code)};
}

// Last block and kind, in front of every block.
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

// In shared memory. Made by a warp; every lane of any warp may then ask for what it gets.
class Description {
 public:
  // litlen_codes: 286, distance_codes: 32 of them, in shared memory.
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

  // Of all lanes together, without the head.
  __device__ std::uint32_t bits() const { return bits_; }

  // A lane's own: what it gets in a round. The first is given what lane 0 gets before.
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

  // The number of the last symbol that has a code, and one.
  __device__ static std::uint32_t count_used(const Code* codes, std::uint32_t count) {
    std::uint32_t used = 0;
    for (std::uint32_t first = 0; first < count; first += lane_count) {
      const std::uint32_t symbol = first + this_lane();
      const std::uint32_t occurs = __ballot_sync(all_lanes, symbol < count && codes[symbol] != 0);
      if (occurs != 0) used = first + lane_count - __clz(occurs);
    }
    return used;
  }

  // How many items a run takes.
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

  // A lane's own.
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
        // The next begin: two shifts, as there may be no lane above.
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
      const std::uint32_t to = place + sum_up_to_here(items);
      if (run != 0) add_run(to - items, length, run);
      place = __shfl_sync(all_lanes, to, lane_count - 1);
    }
    if (lane == 0) item_count_ = place;
    __syncwarp();
  }

  std::uint16_t items_[item_count_max];  // symbol, and above 8 bits what its extra bits say
  std::uint32_t run_begins_[chunk_count];
  std::uint32_t counts_[lane_count];
  Code codes_[lane_count];
  std::uint32_t item_count_;
  std::uint32_t litlen_count_;
  std::uint32_t distance_count_;
  std::uint32_t code_count_;
  std::uint32_t bits_;
};

}  // namespace nacre::engine::cuda::gdeflate
