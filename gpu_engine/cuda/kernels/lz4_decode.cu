// SPDX-License-Identifier: Apache-2.0
// LZ4 blocks, decoded by one warp a piece.
//
// The coded bytes are taken in windows of 32 that begin at a token. Every lane reads a sequence as
// if its byte were a token, so the true ones are found by hopping from lane to lane, without a read
// between. Lane k then keeps the k-th, a prefix sum of their sizes says where each one's bytes go,
// and the bytes are written 32 at a time, a lane a byte: from the literals, from what is written,
// or (a match may reach into the 32 themselves, or into itself) from the lane that has the byte,
// found by pointer doubling. So no match is a special case. Only sequences with more than 269
// literals or 273 bytes of match are taken one by one.
//
// After Gompresso (Sitaridis et al., ICPP 2016), which resolves references in rounds per sequence.
#include "gpu_engine/cuda/kernels/lz4.h"
#include "gpu_engine/cuda/kernels/lz4_warp.cuh"

namespace nacre::engine::cuda {
namespace lz4 {
namespace {

constexpr std::uint32_t coded_size_max = 1u << 20;  // far above what a piece's code can need

// A sequence begins at least three bytes after the one before it.
constexpr std::uint32_t sequences_max = (lane_count + 2) / 3;

__device__ __forceinline__ std::uint32_t or_of_lanes(std::uint32_t bits) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(all_lanes, bits);
#else
  for (std::uint32_t step = 1; step < lane_count; step *= 2)
    bits |= __shfl_xor_sync(all_lanes, bits, step);
  return bits;
#endif
}

// What a lane found when it took its byte for a token.
struct Candidate {
  std::uint32_t literals;
  std::uint32_t match_size;  // 0: the last sequence
  std::uint32_t distance;
  std::uint32_t size;  // coded
  enum Kind : std::uint32_t { whole, last, large, broken } kind;
};

class Decoder {
 public:
  __device__ explicit Decoder(const CodecTask& task)
      : in_(task.in), in_size_(task.in_size), out_(task.out), out_size_(task.out_size) {}

  __device__ bool run() {
    while (from_ < in_size_) {
      const Candidate candidate = read_candidate(from_ + this_lane());
      std::uint32_t stop = Candidate::whole;
      if (!write_window(candidate, stop)) return false;
      if (stop == Candidate::broken) return false;
      if (stop == Candidate::last) return from_ == in_size_ && to_ == out_size_;
      if (stop == Candidate::large) {
        bool ended = false;
        if (!write_large(ended)) return false;
        if (ended) return from_ == in_size_ && to_ == out_size_;
      }
    }
    return false;  // a block ends with literals
  }

 private:
  // A lane's own.
  __device__ __forceinline__ Candidate read_candidate(std::uint32_t at) const {
    Candidate result = {0, 0, 0, 0, Candidate::broken};
    if (at >= in_size_) return result;
    const std::uint32_t token = in_[at++];
    result.literals = token >> 4;
    if (result.literals == 15) {
      if (at >= in_size_) return result;
      const std::uint32_t more = in_[at++];
      result.literals += more;
      if (more == 255) result.kind = Candidate::large;
    }
    if (result.kind == Candidate::large) return result;
    at += result.literals;
    result.size = at - from_ - this_lane();
    if (at >= in_size_) {
      if (at == in_size_) result.kind = Candidate::last;
      return result;
    }
    result.match_size = (token & 15) + match_size_min;
    const bool extended = (token & 15) == 15;
    const std::uint32_t rest = extended ? 3 : 2;
    if (at + rest > in_size_) return result;
    result.distance = in_[at] | static_cast<std::uint32_t>(in_[at + 1]) << 8;
    result.size += rest;
    result.kind = Candidate::whole;
    if (extended) {
      const std::uint32_t more = in_[at + 2];
      result.match_size += more;
      if (more == 255) result.kind = Candidate::large;
    }
    return result;
  }

  // Writes the window's true sequences up to the first that is no whole one (or the last one, which
  // is written too): stop says which. False when one of them is not valid.
  __device__ __forceinline__ bool write_window(const Candidate& candidate, std::uint32_t& stop) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t hop = candidate.size | candidate.kind << 16;
    std::uint32_t at = 0;
    std::uint32_t count = 0;
    std::uint32_t mine = 0;
    while (at < lane_count) {
      const std::uint32_t next = __shfl_sync(all_lanes, hop, at);
      stop = next >> 16;
      if (stop >= Candidate::large) break;
      if (lane == count) mine = at;
      count++;
      at += next & 0xffff;
      if (stop == Candidate::last) break;
    }
    if (count == 0) return true;

    const std::uint32_t sizes =
        __shfl_sync(all_lanes, candidate.literals | candidate.match_size << 16, mine);
    const std::uint32_t distance = __shfl_sync(all_lanes, candidate.distance, mine);
    const std::uint32_t literals = sizes & 0xffff;
    const std::uint32_t match_size = sizes >> 16;
    const std::uint32_t size = lane < count ? literals + match_size : 0;
    std::uint32_t end = size;
    for (std::uint32_t step = 1; step < sequences_max; step *= 2) {
      const std::uint32_t before = __shfl_up_sync(all_lanes, end, step);
      if (lane >= step) end += before;
    }
    const std::uint32_t begin = end - size;
    const std::uint32_t total = __shfl_sync(all_lanes, end, count - 1);
    if (total > out_size_ - to_) return false;
    const bool reaches_out =
        lane < count && match_size != 0 && (distance == 0 || distance > to_ + begin + literals);
    if (__any_sync(all_lanes, reaches_out)) return false;

    const std::uint32_t literals_at = from_ + mine + (literals < 15 ? 1 : 2);
    write_bytes(total, lane < count ? begin : ~0u, (begin + literals) | distance << 16,
                literals_at - begin);
    from_ += at;
    to_ += total;
    return true;
  }

  // Writes total bytes at to_. Lane k has the k-th sequence: where it begins, where its match
  // begins (low half) and its distance (high half), and what leads from a place in the output to
  // the literal that belongs there.
  __device__ __forceinline__ void write_bytes(std::uint32_t total, std::uint32_t begin,
                                              std::uint32_t match, std::uint32_t to_literal) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t up_to_here = all_lanes >> (lane_count - 1 - lane);
    Byte* const out = out_ + to_;
    std::uint32_t begun = 0;
    for (std::uint32_t tile = 0; tile < total; tile += lane_count) {
      const std::uint32_t begins =
          or_of_lanes(begin - tile < lane_count ? 1u << (begin - tile) : 0);
      const std::uint32_t owner = begun + __popc(begins & up_to_here) - 1;
      begun += __popc(begins);
      const std::uint32_t here = tile + lane;
      const std::uint32_t owner_match = __shfl_sync(all_lanes, match, owner);
      const std::uint32_t owner_to_literal = __shfl_sync(all_lanes, to_literal, owner);
      const bool literal = here < (owner_match & 0xffff);
      const std::int32_t source =
          static_cast<std::int32_t>(here) - static_cast<std::int32_t>(owner_match >> 16);
      const bool waits = !literal && source >= static_cast<std::int32_t>(tile) && here < total;
      std::uint32_t value = 0;
      if (here < total && !waits) value = literal ? in_[here + owner_to_literal] : out[source];
      if (__any_sync(all_lanes, waits)) {
        std::uint32_t giver = waits ? static_cast<std::uint32_t>(source) - tile : lane;
        for (bool moved = true; moved;) {
          const std::uint32_t next = __shfl_sync(all_lanes, giver, giver);
          moved = __any_sync(all_lanes, next != giver);
          giver = next;
        }
        value = __shfl_sync(all_lanes, value, giver);
      }
      if (here < total) out[here] = static_cast<Byte>(value);
      __syncwarp();
    }
  }

  // Adds the bytes behind a nibble of 15, from at on; false when the block ends in them.
  __device__ __forceinline__ bool read_extra(std::uint32_t& at, std::uint32_t& count) const {
    while (at < in_size_) {
      const std::uint32_t here = at + this_lane();
      const std::uint32_t more = here < in_size_ ? in_[here] : 0;
      const std::uint32_t ends = __ballot_sync(all_lanes, more != 255);
      const std::uint32_t full = ends == 0 ? lane_count : __ffs(ends) - 1;
      count += full * 255;
      at += full;
      if (ends != 0) {
        count += __shfl_sync(all_lanes, more, full);
        return at++ < in_size_;
      }
    }
    return false;
  }

  // Writes one sequence of any size; ended: it was the last.
  __device__ bool write_large(bool& ended) {
    const std::uint32_t token = in_[from_++];
    std::uint32_t literals = token >> 4;
    if (literals == 15 && !read_extra(from_, literals)) return false;
    if (literals > in_size_ - from_ || literals > out_size_ - to_) return false;
    copy_bytes(out_ + to_, in_ + from_, literals);
    __syncwarp();
    from_ += literals;
    to_ += literals;
    ended = from_ == in_size_;
    if (ended) return true;

    if (in_size_ - from_ < 2) return false;
    const std::uint32_t distance = in_[from_] | static_cast<std::uint32_t>(in_[from_ + 1]) << 8;
    from_ += 2;
    std::uint32_t match_size = token & 15;
    if (match_size == 15 && !read_extra(from_, match_size)) return false;
    match_size += match_size_min;
    if (distance == 0 || distance > to_ || match_size > out_size_ - to_) return false;
    copy_match(distance, match_size);
    to_ += match_size;
    return true;
  }

  // What repeats with one distance repeats with its multiples: once a step's bytes lie there, words
  // are copied from a multiple that is no less than a step.
  __device__ __forceinline__ void copy_match(std::uint32_t distance, std::uint32_t size) {
    constexpr std::uint32_t step = 4 * lane_count;
    const std::uint32_t lane = this_lane();
    Byte* const to = out_ + to_;
    const std::uint32_t far = distance >= step ? distance : (step / distance + 1) * distance;
    const std::uint32_t head_size = min(size, far + 4);
    for (std::uint32_t i = lane; i < head_size; i += lane_count)
      to[i] = *(to - distance + (distance > i ? i : i % distance));
    __syncwarp();
    if (head_size < size) copy_steps(to + head_size, far, size - head_size);
  }

  __device__ __forceinline__ void copy_steps(Byte* to, std::uint32_t distance, std::uint32_t size) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t head =
        min(size, static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to)) & 3);
    if (lane < head) to[lane] = *(to + lane - distance);
    __syncwarp();
    to += head;
    size -= head;
    const Words source(to - distance);
    const std::uint32_t word_count = size / 4;
    for (std::uint32_t i = 0; i < word_count; i += lane_count) {
      if (i + lane < word_count)
        reinterpret_cast<std::uint32_t*>(to)[i + lane] = source.at(4 * (i + lane));
      __syncwarp();
    }
    const std::uint32_t done = 4 * word_count;
    if (done + lane < size) to[done + lane] = *(to + done + lane - distance);
    __syncwarp();
  }

  const Byte* const in_;
  const std::uint32_t in_size_;
  Byte* const out_;
  const std::uint32_t out_size_;
  std::uint32_t from_ = 0;  // in in_: the next token
  std::uint32_t to_ = 0;    // in out_
};

constexpr std::uint32_t warps_a_block = 2;

__global__ void __launch_bounds__(lane_count* warps_a_block)
    decode_pieces(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
  const std::uint32_t index = blockIdx.x * warps_a_block + threadIdx.x / lane_count;
  if (index >= count) return;
  const CodecTask task = tasks[index];
  const bool valid =
      task.out_size <= piece_size_max && task.in_size <= coded_size_max && Decoder(task).run();
  if (this_lane() == 0) results[index] = valid;
}

}  // namespace
}  // namespace lz4

cudaError_t lz4_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const std::uint32_t blocks = (count + lz4::warps_a_block - 1) / lz4::warps_a_block;
  lz4::decode_pieces<<<blocks, lz4::lane_count * lz4::warps_a_block, 0, stream>>>(tasks, count,
                                                                                  results);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
