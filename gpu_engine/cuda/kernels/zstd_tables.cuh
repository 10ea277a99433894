// SPDX-License-Identifier: Apache-2.0
// The tables that decode a zstd block, built by a warp in shared memory: FSE tables and the Huffman
// table (RFC 8878, 4.1 and 4.2). All lanes call these functions together, and get the same answer.
//
// The plain loops that build an FSE table of `size` states:
//
//   rare symbols (probability below one state) get the last states, one each;
//   for (state = 0, each other symbol, as many times as it has states) {           // spreading
//     table[state].symbol = symbol;
//     do state = (state + step) % size; while (state is a rare symbol's);
//   }
//   for (state = 0; state < size; ++state) {                                       // next states
//     number = next[table[state].symbol]++;    // begins with the symbol's count of states
//     bits = log - highest_bit(number);
//     table[state].next = (number << bits) - size;
//   }
//
// The Huffman table gets, for each weight in rising order and each symbol of that weight,
// 2^(weight - 1) entries in a row. The steps from there take 32 symbols or states at a time, one
// for each lane:
//
// 1. Spreading. Step i of the loop, if no step were left out, meets state i * step % size. So each
//    lane computes its state. Each symbol's states form a run of steps: a bit is set at the first
//    step of each run, and a count of the bits up to a step gives its symbol. The steps that meet a
//    rare symbol's state are left out by another count.
// 2. Next states. The number of a state among those of its symbol is the count of lanes before it
//    that have the same symbol (match), plus the count from the states before these 32.
// 3. Huffman. Symbols are sorted by weight, with the same count of equal lanes. Then each entry
//    computes to which symbol it belongs.
//
// Distributions and FSE-coded weights are read bit by bit. Every lane reads all of them, so no lane
// waits for another.
//
// The tables of a hostile frame lead nowhere else: a table is used only if its probabilities add up
// to its size, and then every next state lies in the table.
#pragma once

#include "gpu_engine/cuda/kernels/zstd_format.cuh"

namespace nacre::engine::cuda::zstd {

// An entry of an FSE table: what its state means, and where the next one is. The entries of the
// three tables can be added up, for their bits:
//
//   31      23      17 16     11 10     5 4    0
//   | next    |  0    | symbol  | extra  | bits |
//
// next: the next state is this plus the value of `bits` bits. extra: of the symbol's length or
// offset.
__device__ __forceinline__ std::uint32_t make_entry(std::uint32_t next, std::uint32_t symbol,
                                                    std::uint32_t extra_bits, std::uint32_t bits) {
  return next << 23 | symbol << 11 | extra_bits << 5 | bits;
}
__device__ __forceinline__ std::uint32_t next_of(std::uint32_t entry) {
  return entry >> 23;
}
__device__ __forceinline__ std::uint32_t symbol_of(std::uint32_t entry) {
  return entry >> 11 & 63;
}
// Takes an entry, or the sum of three entries.
__device__ __forceinline__ std::uint32_t extra_bits_of(std::uint32_t entry) {
  return entry >> 5 & 63;
}
__device__ __forceinline__ std::uint32_t bits_of(std::uint32_t entry) {
  return entry & 31;
}

inline constexpr std::uint32_t fse_symbol_count_max = 64;
inline constexpr std::uint32_t fse_state_count_max = 512;
inline constexpr std::uint32_t weight_words_max = 34;  // the stream of weights, and a 0 before it

// Scratch memory for building a table.
struct FseScratch {
  std::int16_t probability[fse_symbol_count_max];  // -1: less than one state's
  std::uint16_t next[fse_symbol_count_max];
  std::uint32_t begins[fse_state_count_max / 32];
  Byte present[fse_symbol_count_max];  // symbols with a probability above 0
  Byte spread[fse_state_count_max];
};
struct HuffmanScratch {
  Byte weights[huffman_symbol_count_max];
  union {
    std::uint32_t stream[weight_words_max];
    Byte sorted[huffman_symbol_count_max];
  };
  std::uint32_t count[16];  // of symbols of a weight
  std::uint32_t begin[16];  // of a weight's symbols in sorted
  std::uint32_t next[16];
};

struct Distribution {
  std::uint32_t size_bytes;  // 0: not valid
  std::uint32_t log;
  std::uint32_t symbol_count;
};

// Reads probabilities (RFC 8878, 4.1.1).
__device__ inline Distribution read_distribution(FseScratch& scratch, const Byte* bytes,
                                                 std::uint32_t size, std::uint32_t symbol_max,
                                                 std::uint32_t log_max) {
  __syncwarp();
  scratch.probability[this_lane()] = 0;
  scratch.probability[this_lane() + lane_count] = 0;
  __syncwarp();
  if (size == 0) return {0, 0, 0};
  const InputWords in(bytes, size);
  std::uint32_t at = in.first_bit();
  const std::uint32_t log = (in.bits_from(at) & 15) + 5;
  if (log > log_max) return {0, 0, 0};
  at += 4;
  std::uint32_t remaining = (1u << log) + 1;
  std::uint32_t threshold = 1u << log;
  std::uint32_t bit_count = log + 1;
  std::uint32_t symbol = 0;
  bool after_zero = false;
  while (remaining > 1 && symbol <= symbol_max) {
    if (after_zero) {
      std::uint32_t repeat = 3;
      while (repeat == 3 && symbol <= symbol_max) {
        repeat = in.bits_from(at) & 3;
        at += 2;
        symbol += repeat;
      }
      if (symbol > symbol_max) break;
    }
    const std::uint32_t bits = in.bits_from(at);
    const std::uint32_t low_max = 2 * threshold - 1 - remaining;
    std::uint32_t value = bits & (threshold - 1);
    if (value < low_max) {
      at += bit_count - 1;
    } else {
      value = bits & (2 * threshold - 1);
      if (value >= threshold) value -= low_max;
      at += bit_count;
    }
    // value: the probability plus 1.
    remaining -= value == 0 ? 1 : value - 1;
    if (this_lane() == 0)
      scratch.probability[symbol] = static_cast<std::int16_t>(static_cast<std::int32_t>(value) - 1);
    ++symbol;
    after_zero = value == 1;
    if (remaining < threshold && remaining > 1) {
      bit_count = highest_bit(remaining) + 1;
      threshold = 1u << (bit_count - 1);
    }
  }
  __syncwarp();
  const std::uint32_t size_bytes = in.bytes_below(at);
  if (remaining != 1 || size_bytes > size) return {0, 0, 0};
  return {size_bytes, log, symbol};
}

// Builds a table of 1 << log states (at least 32) from scratch.probability, whose states add up to
// that. extra_bits(symbol).
template <typename ExtraBits>
__device__ __forceinline__ void build_fse_table(FseScratch& scratch, std::uint32_t* table,
                                                std::uint32_t log, std::uint32_t symbol_count,
                                                ExtraBits extra_bits) {
  const std::uint32_t lane = this_lane();
  const std::uint32_t size = 1u << log;
  if (lane < fse_state_count_max / 32) scratch.begins[lane] = 0;
  __syncwarp();
  std::uint32_t spread_size = 0;
  std::uint32_t present_count = 0;
  std::uint32_t rare_count = 0;
  for (std::uint32_t first = 0; first < symbol_count; first += lane_count) {
    const std::uint32_t symbol = first + lane;
    const std::int32_t probability = symbol < symbol_count ? scratch.probability[symbol] : 0;
    const std::uint32_t states = probability > 0 ? static_cast<std::uint32_t>(probability) : 0;
    const std::uint32_t end = inclusive_sum(states);
    const std::uint32_t present = __ballot_sync(all_lanes, states != 0);
    const std::uint32_t rare = __ballot_sync(all_lanes, probability < 0);
    if (states != 0) {
      const std::uint32_t begin = spread_size + end - states;
      scratch.present[present_count + __popc(present & lanes_below())] = static_cast<Byte>(symbol);
      atomicAdd(&scratch.begins[begin / 32], 1u << begin % 32);
    }
    if (probability < 0) table[size - 1 - rare_count - __popc(rare & lanes_below())] = symbol;
    if (symbol < symbol_count)
      scratch.next[symbol] = static_cast<std::uint16_t>(probability < 0 ? 1 : states);
    spread_size += from_last_lane(end);
    present_count += __popc(present);
    rare_count += __popc(rare);
  }
  __syncwarp();
  std::uint32_t begun = 0;
  for (std::uint32_t first = 0; first < spread_size; first += lane_count) {
    const std::uint32_t begins = scratch.begins[first / 32];
    const std::uint32_t mine = begun + __popc(begins & lanes_up_to_here());
    begun += __popc(begins);
    if (first + lane < spread_size) scratch.spread[first + lane] = scratch.present[mine - 1];
  }
  __syncwarp();
  const std::uint32_t step = (size >> 1) + (size >> 3) + 3;
  std::uint32_t placed = 0;
  for (std::uint32_t i = lane; i < size; i += lane_count) {
    const std::uint32_t state = i * step & (size - 1);
    const bool is_free = state < size - rare_count;
    const std::uint32_t free = __ballot_sync(all_lanes, is_free);
    if (is_free) table[state] = scratch.spread[placed + __popc(free & lanes_below())];
    placed += __popc(free);
  }
  __syncwarp();
  for (std::uint32_t state = lane; state < size; state += lane_count) {
    const std::uint32_t symbol = table[state];
    const std::uint32_t alike = __match_any_sync(all_lanes, symbol);
    const std::uint32_t before = __popc(alike & lanes_below());
    const std::uint32_t number = scratch.next[symbol] + before;
    __syncwarp();
    if (before == 0) scratch.next[symbol] = static_cast<std::uint16_t>(number + __popc(alike));
    const std::uint32_t bits = log - highest_bit(number);
    table[state] = make_entry((number << bits) - size, symbol, extra_bits(symbol), bits);
    __syncwarp();
  }
}

// The bits below a place of words in shared memory: 32 of them, the highest is read first.
__device__ __forceinline__ std::uint32_t bits_below(const std::uint32_t* words,
                                                    std::uint32_t place) {
  const std::uint32_t from = place - 32;
  return __funnelshift_r(words[from / 32], words[from / 32 + 1], from);
}

// Reads FSE-coded weights (RFC 8878, 4.2.1.2) of size bytes. Returns how many there are; 0 where
// they are not valid. table: room for 64 states.
__device__ inline std::uint32_t read_coded_weights(FseScratch& fse, HuffmanScratch& huffman,
                                                   std::uint32_t* table, const Byte* bytes,
                                                   std::uint32_t size) {
  const Distribution found = read_distribution(fse, bytes, size, weight_max, weight_log_max);
  if (found.size_bytes == 0 || found.size_bytes == size) return 0;
  build_fse_table(fse, table, found.log, found.symbol_count,
                  [](std::uint32_t) -> std::uint32_t { return 0; });
  const InputWords in(bytes + found.size_bytes, size - found.size_bytes);
  const std::uint32_t mark = in.end_mark();
  if (mark < in.first_bit() + 2 * found.log) return 0;
  for (std::uint32_t i = this_lane(); i < weight_words_max; i += lane_count)
    huffman.stream[i] = in.word(static_cast<std::int32_t>(i) - 1);
  __syncwarp();
  // The word of zeros in front moves every place.
  const std::uint32_t first_bit = in.first_bit() + 32;
  std::uint32_t at = mark + 32;
  std::uint32_t state = first_bits(bits_below(huffman.stream, at), found.log);
  at -= found.log;
  std::uint32_t other = first_bits(bits_below(huffman.stream, at), found.log);
  at -= found.log;
  std::uint32_t count = 0;
  // The last symbol of all has no weight here, and the last two weights are given at once.
  while (count + 2 < huffman_symbol_count_max) {
    const std::uint32_t entry = table[state];
    if (this_lane() == 0) huffman.weights[count] = static_cast<Byte>(symbol_of(entry));
    ++count;
    if (at < first_bit + bits_of(entry)) {
      if (this_lane() == 0) huffman.weights[count] = static_cast<Byte>(symbol_of(table[other]));
      return count + 1;
    }
    state = other;
    other = next_of(entry) + first_bits(bits_below(huffman.stream, at), bits_of(entry));
    at -= bits_of(entry);
  }
  return 0;
}

struct HuffmanTable {
  std::uint32_t size_bytes;  // of its description; 0: not valid
  std::uint32_t log;
};

// Builds the table of 1 << log entries, each a code's size and, from bit 8 on, its symbol.
__device__ inline void build_huffman_table(HuffmanScratch& scratch, std::uint16_t* table,
                                           std::uint32_t log, std::uint32_t symbol_count) {
  const std::uint32_t lane = this_lane();
  std::uint32_t begin = 0;  // of the weight that is the lane's number
  for (std::uint32_t weight = 1; weight < lane && weight < 16; ++weight)
    begin += scratch.count[weight];
  __syncwarp();
  if (lane < 16) scratch.begin[lane] = scratch.next[lane] = begin;
  __syncwarp();
  for (std::uint32_t first = 0; first < symbol_count; first += lane_count) {
    const std::uint32_t symbol = first + lane;
    const std::uint32_t weight = symbol < symbol_count ? scratch.weights[symbol] : 0;
    const std::uint32_t alike = __match_any_sync(all_lanes, weight);
    const std::uint32_t before = __popc(alike & lanes_below());
    const std::uint32_t place = scratch.next[weight] + before;
    __syncwarp();
    if (weight != 0) {
      scratch.sorted[place] = static_cast<Byte>(symbol);
      if (before == 0) scratch.next[weight] = place + __popc(alike);
    }
    __syncwarp();
  }
  std::uint32_t entry = 0;
  for (std::uint32_t weight = 1; weight <= log; ++weight) {
    const std::uint32_t entry_count = scratch.count[weight] << (weight - 1);
    const Byte* const symbols = scratch.sorted + scratch.begin[weight];
    for (std::uint32_t i = lane; i < entry_count; i += lane_count)
      table[entry + i] = static_cast<std::uint16_t>((log + 1 - weight) |
                                                    std::uint32_t{symbols[i >> (weight - 1)]} << 8);
    entry += entry_count;
  }
  __syncwarp();
}

// Reads a Huffman tree's description, which begins at bytes, and builds its table.
// weight_table: room for 64 states, which may be table's.
__device__ inline HuffmanTable read_huffman_table(FseScratch& fse, HuffmanScratch& scratch,
                                                  std::uint32_t* weight_table, std::uint16_t* table,
                                                  const Byte* bytes, std::uint32_t size) {
  constexpr HuffmanTable bad = {0, 0};
  const std::uint32_t lane = this_lane();
  if (size == 0) return bad;
  const std::uint32_t head = load(bytes);
  std::uint32_t size_bytes = 1;
  std::uint32_t count = 0;
  __syncwarp();
  if (head < 128) {
    size_bytes += head;
    if (size_bytes > size) return bad;
    count = read_coded_weights(fse, scratch, weight_table, bytes + 1, head);
    if (count == 0) return bad;
  } else {
    count = head - 127;
    size_bytes += (count + 1) / 2;
    if (size_bytes > size) return bad;
    for (std::uint32_t i = lane; i < count; i += lane_count) {
      const std::uint32_t two = load(bytes + 1 + i / 2);
      scratch.weights[i] = static_cast<Byte>(i % 2 == 0 ? two >> 4 : two & 15);
    }
  }
  if (lane < 16) scratch.count[lane] = 0;
  __syncwarp();
  // The last weight is what is left of the next power of two.
  std::uint32_t sum = 0;
  std::uint32_t ones = 0;
  bool too_large = false;
  for (std::uint32_t i = lane; i < count; i += lane_count) {
    const std::uint32_t weight = scratch.weights[i];
    too_large = too_large || weight > huffman_log_max;
    sum += weight == 0 || weight > huffman_log_max ? 0 : 1u << (weight - 1);
    if (weight < 16) atomicAdd(&scratch.count[weight], 1);
  }
  sum = sum_of_lanes(sum);
  if (__any_sync(all_lanes, too_large) || sum == 0) return bad;
  const std::uint32_t log = highest_bit(sum) + 1;
  const std::uint32_t rest = (1u << log) - sum;
  if (log > huffman_log_max || (rest & (rest - 1)) != 0) return bad;
  const std::uint32_t last = highest_bit(rest) + 1;
  if (lane == 0) {
    scratch.weights[count] = static_cast<Byte>(last);
    ++scratch.count[last];
  }
  __syncwarp();
  ones = scratch.count[1];
  if (ones < 2 || ones % 2 != 0) return bad;
  build_huffman_table(scratch, table, log, count + 1);
  return {size_bytes, log};
}

}  // namespace nacre::engine::cuda::zstd
