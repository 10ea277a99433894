// SPDX-License-Identifier: Apache-2.0
// A warp that finds the sequences of an LZ4 block, and checks them before
// anything is written.
//
// The coded bytes are taken in windows of 32 that begin at a token. Every lane
// reads a sequence as if its byte were a token; then lane k hops k times from
// lane 0, by doubling, and so has the k-th true one. A prefix sum of their
// sizes says where each one's bytes go. Sequences with more than one byte of
// extra count, and the last, are taken one by one.
//
// A window of what liblz4 makes of Silesia's seven files has 7.6 sequences and
// gives 89 bytes.
#pragma once

#include "gpu_engine/cuda/kernels/lz4_warp.cuh"

namespace nacre::engine::cuda::lz4 {

// A sequence begins at least three bytes after the one before it.
constexpr std::uint32_t window_sequences_max = (lane_count + 2) / 3;

// Added to a lane's number: a sequence begins there that has to be taken by
// itself.
constexpr std::uint32_t to_single = 1024;

// What is to be written at one time. All lanes have the same kind, place and
// size.
struct Step {
  enum Kind : std::uint32_t { window, single, bad } kind;
  std::uint32_t to;    // in the output
  std::uint32_t size;  // in the output; single: of the match, 0 for none
  // window: lane k has the k-th sequence; lanes behind the last have begin =
  // all_lanes.
  std::uint32_t begin;       // counted from to. single: where its literals lie
  std::uint32_t match;       // where its match begins, and << 16 its distance. single: literals
  std::uint32_t to_literal;  // from a place behind to, to its literal's. single: distance
};

class Parser {
 public:
  // in_size is not 0.
  __device__ explicit Parser(const CodecTask& task)
      : in_(task.in), in_size_(task.in_size), out_size_(task.out_size) {
    read_window();
  }

  // Hands every step to sink.window or sink.single; whether the block was one of out_size bytes.
  template <typename Sink>
  __device__ __forceinline__ bool run(Sink& sink) {
    for (;;) {
      bool single_next = false;
      const Step step = next_window(single_next);
      if (step.kind == Step::bad) return false;
      if (step.size != 0) sink.window(step);
      if (!single_next) continue;
      const Step single = next_single();
      if (single.kind == Step::bad) return false;
      sink.single(single);
      if (from_ == in_size_) return single.size == 0 && to_ == out_size_;
      read_window();
    }
  }

 private:
  __device__ __forceinline__ static Step bad() { return {Step::bad, 0, 0, 0, 0, 0}; }

  // A lane's own: the byte that it takes for a token, and the one behind it. A
  // lane past the end takes the last byte; its sequence reaches out of the code
  // in any case.
  __device__ __forceinline__ void read_window() {
    const std::uint32_t at = from_ + this_lane();
    token_ = load(in_ + min(at, in_size_ - 1));
    behind_token_ = load(in_ + min(at + 1, in_size_ - 1));
  }

  // The window's sequences up to the first that has to be taken by itself;
  // none: size is 0. Reads the window behind them.
  __device__ __forceinline__ Step next_window(bool& single_next) {
    const std::uint32_t lane = this_lane();
    const bool long_literals = token_ >= 0xf0;
    const bool long_match = (token_ & 15) == 15;
    const std::uint32_t lane_literals = (token_ >> 4) + (long_literals ? behind_token_ : 0);
    const std::uint32_t rest = lane + lane_literals + (long_literals ? 4 : 3);  // of the sequence
    const Byte* const behind = in_ + min(from_ + rest, in_size_ - 1);
    const std::uint32_t extra = long_match ? load(behind) : 0;
    const std::uint32_t lane_distance = load(behind - min(2u, in_size_ - 1)) |
                                        std::uint32_t{load(behind - min(1u, in_size_ - 1))} << 8;
    std::uint32_t hop = rest + (long_match ? 1 : 0);
    const bool single =
        from_ + hop > in_size_ || (long_literals && behind_token_ == 255) || extra == 255;
    const std::uint32_t lane_sizes = lane_literals | ((token_ & 15) + match_size_min + extra) << 16;
    const std::uint32_t singles = __ballot_sync(all_lanes, single);
    if ((singles & 1) != 0) {
      single_next = true;
      return {Step::window, 0, 0, 0, 0, 0};
    }
    if (hop < lane_count && (singles >> hop & 1) != 0) hop += to_single;

    // Lane k hops k times from lane 0; what is no lane stays as it is.
    std::uint32_t mine = __shfl_sync(all_lanes, hop, 0);
    if ((lane & 1) == 0) mine = 0;
    for (std::uint32_t hops = 2; hops < 16; hops *= 2) {
      hop = hop_on(hop, hop);
      const std::uint32_t on = hop_on(hop, mine);
      if ((lane & hops) != 0) mine = on;
    }
    const std::uint32_t stop = __shfl_sync(all_lanes, mine, window_sequences_max);
    const bool used = mine < lane_count && lane < window_sequences_max;

    const std::uint32_t sizes = __shfl_sync(all_lanes, lane_sizes, mine);
    const std::uint32_t literals = sizes & 0xffff;
    const std::uint32_t size = used ? literals + (sizes >> 16) : 0;
    const std::uint32_t literals_at = from_ + mine + (literals < 15 ? 1 : 2);
    from_ += stop % to_single;
    single_next = stop >= to_single;
    read_window();

    std::uint32_t end = size;
    for (std::uint32_t step = 1; step < window_sequences_max; step *= 2) {
      const std::uint32_t before = __shfl_up_sync(all_lanes, end, step);
      if (lane >= step) end += before;
    }
    const std::uint32_t begin = end - size;
    const std::uint32_t total = __shfl_sync(all_lanes, end, window_sequences_max);
    const std::uint32_t distance = __shfl_sync(all_lanes, lane_distance, mine);
    const std::uint32_t match_at = to_ + begin + literals;
    const bool breaks =
        used && (distance - 1 >= match_at || match_at + match_free_tail > out_size_);
    if (__any_sync(all_lanes, breaks) || total + last_literals > out_size_ - to_) return bad();
    to_ += total;
    return {Step::window,
            to_ - total,
            total,
            used ? begin : all_lanes,
            (begin + literals) | distance << 16,
            literals_at - begin};
  }

  __device__ __forceinline__ static std::uint32_t hop_on(std::uint32_t hop, std::uint32_t from) {
    const std::uint32_t to = __shfl_sync(all_lanes, hop, from);
    return from < lane_count ? to : from;
  }

  // One sequence of any size; without a match: it ends the block.
  __device__ Step next_single() {
    if (from_ >= in_size_) return bad();  // a block ends with literals
    const std::uint32_t token = load(in_ + from_++);
    std::uint32_t literals = token >> 4;
    if (literals == 15 && !read_extra(literals)) return bad();
    if (literals > in_size_ - from_ || literals > out_size_ - to_) return bad();
    Step step = {Step::single, to_, 0, from_, literals, 0};
    from_ += literals;
    to_ += literals;
    if (from_ == in_size_) return step;

    if (in_size_ - from_ < 2 || out_size_ - to_ < match_free_tail) return bad();
    step.to_literal = load(in_ + from_) | std::uint32_t{load(in_ + (from_ + 1))} << 8;
    from_ += 2;
    step.size = token & 15;
    if (step.size == 15 && !read_extra(step.size)) return bad();
    step.size += match_size_min;
    if (step.to_literal - 1 >= to_ || step.size > out_size_ - to_ - last_literals) return bad();
    to_ += step.size;
    return step;
  }

  // Adds the bytes behind a nibble of 15; false when the block ends with them.
  __device__ __forceinline__ bool read_extra(std::uint32_t& count) {
    while (from_ < in_size_) {
      const std::uint32_t here = from_ + this_lane();
      const std::uint32_t more = here < in_size_ ? load(in_ + here) : 0;
      const std::uint32_t ends = __ballot_sync(all_lanes, more != 255);
      const std::uint32_t full = ends == 0 ? lane_count : __ffs(ends) - 1;
      count += full * 255;
      from_ += full;
      if (ends != 0) {
        count += __shfl_sync(all_lanes, more, full);
        return from_++ < in_size_;
      }
    }
    return false;
  }

  const Byte* const in_;
  const std::uint32_t in_size_;
  const std::uint32_t out_size_;
  std::uint32_t from_ = 0;  // the next token
  std::uint32_t to_ = 0;    // in the output
  std::uint32_t token_ = 0;
  std::uint32_t behind_token_ = 0;
};

}  // namespace nacre::engine::cuda::lz4
