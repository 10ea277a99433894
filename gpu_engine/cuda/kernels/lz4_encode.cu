// SPDX-License-Identifier: Apache-2.0
// LZ4 blocks, encoded by one warp a piece.
//
// The piece is taken in windows of 32 positions, a lane a position. Every lane looks its four bytes
// up in a hash table of positions in shared memory and compares them with what lies there, eight
// bytes on and up to four back, all at once. Then the warp walks over the matches from left to
// right: it skips a match whose right neighbour's is longer, so a match begins where it is longest,
// takes back the bytes before it that match too, and extends the one that runs out of what was
// compared, 128 bytes a step. Lane k keeps the window's k-th sequence and all are written together;
// every literal's lane writes it. The next window begins at the end of the last match, or 32 on.
//
// A window of Silesia's seven files gives 3.5 sequences and advances 47 bytes.
#include "gpu_engine/cuda/kernels/lz4.h"
#include "gpu_engine/cuda/kernels/lz4_warp.cuh"

namespace nacre::engine::cuda {
namespace lz4 {
namespace {

// The block format's rules for its end: the last five bytes are literals, and no match begins less
// than twelve bytes before the end.
constexpr std::uint32_t last_literals = 5;
constexpr std::uint32_t match_free_tail = 12;

constexpr std::uint32_t compared_size = 8;  // what every lane compares before any is chosen

// After 1 << patience windows without a match the next one is skipped, then two, and so on.
constexpr std::uint32_t patience_bits = 4;

__device__ __forceinline__ std::uint32_t extra_bytes(std::uint32_t count) {
  return count < 15 ? 0 : (count - 15) / 255 + 1;
}

// A lane's own: what follows a token's nibble of 15.
__device__ __forceinline__ void put_extra(Byte* to, std::uint32_t count) {
  std::uint32_t rest = count - 15;
  for (; rest >= 255; rest -= 255)
    *to++ = 255;
  *to = static_cast<Byte>(rest);
}

// A sequence as one lane keeps it.
struct Sequence {
  std::uint32_t literals;  // count
  std::uint32_t match_size;
  std::uint32_t distance;
  std::uint32_t place;  // of its token

  __device__ __forceinline__ void put(Byte* out) const {
    Byte* to = out + place;
    const std::uint32_t more = match_size - match_size_min;
    *to++ = static_cast<Byte>(min(literals, 15u) << 4 | min(more, 15u));
    if (literals >= 15) {
      put_extra(to, literals);
      to += extra_bytes(literals);
    }
    to += literals;
    to[0] = static_cast<Byte>(distance);
    to[1] = static_cast<Byte>(distance >> 8);
    if (more >= 15) put_extra(to + 2, more);
  }
};

template <int hash_bits>
class Encoder {
 public:
  __device__ Encoder(const CodecTask& task, std::uint16_t* table)
      : in_(task.in),
        words_(task.in),
        size_(task.in_size),
        out_(task.out),
        out_size_(min(task.out_size, task.in_size - 1)),
        table_(table) {}

  // The code's size, or 0 when it is above out_size.
  __device__ std::uint32_t run() {
    std::uint32_t begin = 0;
    std::uint32_t misses = 0;
    while (begin + match_free_tail <= size_) {
      find_matches(begin);
      if (__ballot_sync(all_lanes, size_here_ != 0) == 0) {
        begin += lane_count * (1 + (misses++ >> patience_bits));
        continue;
      }
      misses = 0;
      if (!write_sequences(begin)) return 0;
      begin = max(begin + lane_count, literals_from_);
    }
    return write_last_literals();
  }

 private:
  // A lane's own match at its position: size_here_ (0: none, at most compared_size), distance_,
  // and how many bytes before it match too. Enters the window's positions into the table.
  __device__ __forceinline__ void find_matches(std::uint32_t begin) {
    const std::uint32_t here = begin + this_lane();
    size_here_ = 0;
    const bool looks = here + match_free_tail <= size_;
    std::uint32_t before = 0, bytes = 0, after = 0, found = 0, slot = 0;
    if (looks) {
      fetch(here, before, bytes, after);
      slot = (bytes * 2654435761u) >> (32 - hash_bits);
      found = table_[slot];
    }
    literal_ = looks ? bytes : here < size_ ? in_[here] : 0;
    const std::uint32_t left = __shfl_up_sync(all_lanes, bytes, 1);
    __syncwarp();
    if (looks) table_[slot] = static_cast<std::uint16_t>(here);
    __syncwarp();
    if (looks && found < here) {
      if (this_lane() != 0 && left == bytes) found = here - 1;  // a run, too near for the table
      std::uint32_t found_before, found_bytes, found_after;
      fetch(found, found_before, found_bytes, found_after);
      if (found_bytes == bytes) {
        const std::uint32_t differs = after ^ found_after;
        size_here_ = 4 + (differs == 0 ? 4 : (__ffs(differs) - 1) / 8);
        back_here_ = min(static_cast<std::uint32_t>(__clz(before ^ found_before)) / 8, found);
        distance_here_ = here - found;
      }
    }
  }

  // A lane's own: bytes at − 4 … at + 7 (before is arbitrary where at < 4).
  __device__ __forceinline__ void fetch(std::uint32_t at, std::uint32_t& before,
                                        std::uint32_t& bytes, std::uint32_t& after) const {
    const std::uint32_t place = at + words_.shift;
    const std::uint32_t* const words = words_.words + place / 4;
    const std::uint32_t w0 = words[place < 4 ? 0 : -1], w1 = words[0], w2 = words[1], w3 = words[2];
    const std::uint32_t bits = place % 4 * 8;
    before = __funnelshift_r(w0, w1, bits);
    bytes = __funnelshift_r(w1, w2, bits);
    after = __funnelshift_r(w2, w3, bits);
  }

  // Chooses among the lanes' matches and writes their sequences; false when they do not fit.
  __device__ __forceinline__ bool write_sequences(std::uint32_t begin) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t here = begin + lane;
    const std::uint32_t right = __shfl_down_sync(all_lanes, size_here_, 1);
    const bool wanted = size_here_ != 0 && (lane == lane_count - 1 || right <= size_here_);
    std::uint32_t pending = __ballot_sync(all_lanes, wanted);
    const std::uint32_t packed = distance_here_ | size_here_ << 16 | back_here_ << 24;

    const std::uint32_t first_literal = literals_from_;
    std::uint32_t first_to = 0;    // where the first sequence's literals go
    std::uint32_t literal_to = 0;  // where this lane's literal goes
    bool is_literal = false;
    Sequence mine;
    std::uint32_t count = 0;
    while (pending != 0) {
      const std::uint32_t chosen = __ffs(pending) - 1;
      const std::uint32_t match = __shfl_sync(all_lanes, packed, chosen);
      const std::uint32_t distance = match & 0xffff;
      std::uint32_t match_size = match >> 16 & 0xff;
      std::uint32_t from = begin + chosen;
      match_size = match_size < compared_size ? min(match_size, size_ - last_literals - from)
                                              : extend(from, distance);
      const std::uint32_t back = min(match >> 24, from - literals_from_);
      from -= back;
      match_size += back;

      const std::uint32_t literals = from - literals_from_;
      const std::uint32_t to = place_ + 1 + extra_bytes(literals);
      if (count == 0) first_to = to;
      if (here >= literals_from_ && here < from) {
        is_literal = true;
        literal_to = to + here - literals_from_;
      }
      if (lane == count) mine = {literals, match_size, distance, place_};
      count++;
      place_ = to + literals + 2 + extra_bytes(match_size - match_size_min);
      literals_from_ = from + match_size;
      const std::uint32_t advance = literals_from_ - begin;
      pending = advance >= lane_count ? 0 : pending & all_lanes << advance;
    }
    if (place_ > out_size_) return false;
    if (lane < count) mine.put(out_);
    if (is_literal) out_[literal_to] = static_cast<Byte>(literal_);
    if (first_literal < begin) {
      const std::uint32_t literals = __shfl_sync(all_lanes, mine.literals, 0);
      copy_bytes(out_ + first_to, in_ + first_literal, min(literals, begin - first_literal));
    }
    return true;
  }

  // The size of the match at from, of which compared_size bytes are known to match.
  __device__ __forceinline__ std::uint32_t extend(std::uint32_t from,
                                                  std::uint32_t distance) const {
    const std::uint32_t end = size_ - last_literals;
    std::uint32_t at = from + compared_size;
    for (; at < end; at += 4 * lane_count) {
      const std::uint32_t here = at + 4 * this_lane();
      std::uint32_t equal = 0;
      if (here + 8 <= size_) {
        const std::uint32_t differs = words_.at(here) ^ words_.at(here - distance);
        equal = differs == 0 ? 4 : (__ffs(differs) - 1) / 8;
      } else {
        while (equal < 4 && here + equal < end && in_[here + equal] == in_[here + equal - distance])
          equal++;
      }
      const std::uint32_t ends = __ballot_sync(all_lanes, equal < 4);
      if (ends != 0) {
        const std::uint32_t last = __ffs(ends) - 1;
        at += 4 * last + __shfl_sync(all_lanes, equal, last);
        break;
      }
    }
    return min(at, end) - from;
  }

  __device__ __forceinline__ std::uint32_t write_last_literals() {
    const std::uint32_t literals = size_ - literals_from_;
    const std::uint32_t to = place_ + 1 + extra_bytes(literals);
    if (to + literals > out_size_) return 0;
    if (this_lane() == 0) {
      out_[place_] = static_cast<Byte>(min(literals, 15u) << 4);
      if (literals >= 15) put_extra(out_ + place_ + 1, literals);
    }
    copy_bytes(out_ + to, in_ + literals_from_, literals);
    return to + literals;
  }

  const Byte* const in_;
  const Words words_;
  const std::uint32_t size_;
  Byte* const out_;
  const std::uint32_t out_size_;
  std::uint16_t* const table_;

  std::uint32_t literals_from_ = 0;  // what lies before is coded
  std::uint32_t place_ = 0;          // in out, of the next token

  std::uint32_t literal_ = 0;
  std::uint32_t size_here_ = 0;
  std::uint32_t back_here_ = 0;
  std::uint32_t distance_here_ = 0;
};

template <int hash_bits>
__global__ void __launch_bounds__(lane_count)
    encode_pieces(const CodecTask* tasks, std::uint32_t* results) {
  constexpr std::uint32_t vector_count = (2u << hash_bits) / sizeof(uint4);
  __shared__ uint4 table[vector_count];
  const CodecTask task = tasks[blockIdx.x];
  std::uint32_t size = 0;
  if (task.in_size > match_free_tail && task.in_size <= piece_size_max) {
    for (std::uint32_t i = this_lane(); i < vector_count; i += lane_count)
      table[i] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    size = Encoder<hash_bits>(task, reinterpret_cast<std::uint16_t*>(table)).run();
  }
  if (this_lane() == 0) results[blockIdx.x] = size;
}

}  // namespace
}  // namespace lz4

std::size_t lz4_encode_workspace_size(std::uint32_t) {
  return 0;
}

cudaError_t lz4_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results, void*,
                       cudaStream_t stream, int level) {
  if (count == 0) return cudaSuccess;
  if (level <= 2)
    lz4::encode_pieces<12><<<count, lz4::lane_count, 0, stream>>>(tasks, results);
  else
    lz4::encode_pieces<13><<<count, lz4::lane_count, 0, stream>>>(tasks, results);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
