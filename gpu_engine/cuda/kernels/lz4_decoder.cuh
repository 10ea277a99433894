// SPDX-License-Identifier: Apache-2.0
// LZ4 blocks (docs/FORMAT.md, "LZ4 block"), decoded by a warp: a Parser finds the sequences and
// checks them, a Writer writes their bytes. One warp does both, or two warps do one each
// (lz4_decode.cu).
//
// The plain loop, without its checks:
//
//   for (;;) {
//     token = *in++;
//     literals = token >> 4;              // 15: add bytes, up to the first that is not 255
//     copy(out, in, literals), out += literals, in += literals;
//     if (in == end) break;
//     distance = in[0] | in[1] << 8, in += 2;
//     size = token & 15;                  // 15: add bytes likewise
//     for (size += 4; size > 0; --size, ++out) *out = out[-distance];
//   }
//
// The loop is two chains. Where a token lies is known once the sequence before it is read, and a
// match may copy what the match before it wrote. In both chains 31 of 32 lanes would wait. A warp
// that processes one sequence after the other decodes 52 GB/s. (All figures here are for 4,096
// pieces of 64 KiB of Silesia on an H200, 2026-11-21.) The steps from there:
//
// 1. Guess every token. The warp takes a window of 32 coded bytes that begins at a token. Each lane
//    reads a sequence as if its byte were a token. So it knows its hop: the place of the next
//    token. All loads of a window are under way at the same time: 98 GB/s.
// 2. Find the true tokens by pointer doubling. Lane k has to hop k times from lane 0. A shuffle
//    makes two hops of every lane's one, the next shuffle four, then eight; lane k takes the hops
//    that are in the binary digits of k. A sequence has at least three bytes, so a window has at
//    most 11 of them, and the hops 1, 2, 4 and 8 are enough: 147 GB/s.
// 3. Add up. An inclusive sum over the sizes of the sequences gives the place of each one's bytes.
//    Everything is checked here, before a byte is written.
// 4. Write bytes, not sequences. The output of a window is written 32 bytes at a time, one byte per
//    lane. Each sequence sets the bit of its first byte. By counting the bits up to its own, a lane
//    knows to which sequence its byte belongs. The byte comes from the literals, or from bytes that
//    are written already, or from a lane of the same 32, which pointer doubling finds. So a match
//    that overlaps itself is no special case.
// 5. Treat long sequences separately. A sequence with more than one byte of extra count, and the
//    last one, is copied by the whole warp in words of four bytes.
//
// By count a byte takes 3.3 instructions of a warp. A window of what liblz4 makes of the seven
// files of Silesia has 7.6 sequences and gives 89 bytes.
//
// After Gompresso (Sitaridis et al., ICPP 2016), which resolves references in rounds per sequence.
#pragma once

#include "gpu_engine/cuda/kernels/lz4_format.cuh"

namespace nacre::engine::cuda::lz4 {

// A sequence begins at least three bytes after the one before it.
constexpr std::uint32_t window_sequences_max = (lane_count + 2) / 3;

// Added to a hop when the sequence to which it leads has to be processed by itself.
constexpr std::uint32_t to_single = 1024;

// What is written at one time: the sequences of a window, or a single one. `bad` is not written:
// the block is not valid. kind, to and size are the same in all lanes.
struct Step {
  enum Kind : std::uint32_t { window, single, bad } kind;
  std::uint32_t to;    // offset in the output
  std::uint32_t size;  // plain bytes. single: those of the match alone, 0 if there is none
  // window: lane k has the k-th sequence, and lanes after the last one have begin = all_lanes. Its
  // places are counted from `to`. single: all lanes have the one sequence.
  std::uint32_t begin;  // where the sequence begins. single: offset of its literals in the code
  std::uint32_t match;  // where its match begins, and << 16 the distance. single: literal count
  std::uint32_t to_literal;  // added to a literal's place: its offset in the code. single: distance
};

class Parser {
 public:
  // task.in_size is not 0.
  __device__ explicit Parser(const CodecTask& task)
      : in_(task.in), in_size_(task.in_size), out_size_(task.out_size) {
    read_window();
  }

  // Hands every step to sink.window() or sink.single(). Returns whether the code is a block of
  // exactly out_size plain bytes.
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

  // Per lane: loads the lane's byte of the window and the byte after it. A lane past the end of the
  // code loads the last byte; its sequence then reaches past the end in any case.
  __device__ __forceinline__ void read_window() {
    const std::uint32_t at = from_ + this_lane();
    token_ = load(in_ + min(at, in_size_ - 1));
    behind_token_ = load(in_ + min(at + 1, in_size_ - 1));
  }

  // Returns the window's sequences up to the first that has to be processed by itself (size 0 if
  // that is the first one). single_next is set if there is such a sequence. Also reads the next
  // window.
  __device__ __forceinline__ Step next_window(bool& single_next) {
    const std::uint32_t lane = this_lane();
    const bool long_literals = token_ >= 0xf0;
    const bool long_match = (token_ & 15) == 15;
    const std::uint32_t lane_literals = (token_ >> 4) + (long_literals ? behind_token_ : 0);
    // The place after the distance.
    const std::uint32_t rest = lane + lane_literals + (long_literals ? 4 : 3);
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

    // Lane k hops k times from lane 0. A place past the window leads nowhere: it stays as it is.
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

  // One sequence of any size. A sequence without a match ends the block.
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

  // Adds the bytes of extra count that follow a nibble of 15. False when the block ends with them.
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
  std::uint32_t from_ = 0;  // offset of the next token in the code
  std::uint32_t to_ = 0;    // offset of its first byte in the output
  std::uint32_t token_ = 0;
  std::uint32_t behind_token_ = 0;
};

class Writer {
 public:
  __device__ explicit Writer(const CodecTask& task) : in_(task.in), out_(task.out) {}

  __device__ __forceinline__ void window(const Step& step) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t up_to_here = all_lanes >> (lane_count - 1 - lane);
    Byte* const out = out_ + step.to;
    std::uint32_t owners = all_lanes;  // how many sequences begin before this tile, minus one
    for (std::uint32_t tile = 0; tile < step.size; tile += lane_count) {
      const std::uint32_t place = step.begin - tile;
      const std::uint32_t begins = or_of_lanes(place < lane_count ? 1u << place : 0);
      const std::uint32_t owner = owners + __popc(begins & up_to_here);
      owners += __popc(begins);
      const std::uint32_t here = tile + lane;
      const std::uint32_t match = __shfl_sync(all_lanes, step.match, owner);
      const std::uint32_t to_literal = __shfl_sync(all_lanes, step.to_literal, owner);
      const std::uint32_t distance = match >> 16;
      const bool exists = here < step.size;
      const bool literal = here < (match & 0xffff);
      const bool waits = exists && !literal && distance <= lane;
      const Byte* const source = literal ? in_ + (here + to_literal) : out + here - distance;
      std::uint32_t value = 0;
      if (exists && !waits) value = load(source);
      if (__any_sync(all_lanes, waits))
        value = take_from_lanes(value, waits ? lane - distance : lane);
      if (exists) store(out + here, static_cast<Byte>(value));
      __syncwarp();
    }
  }

  __device__ void single(const Step& step) {
    copy_bytes(out_ + step.to, in_ + step.begin, step.match);
    __syncwarp();
    if (step.size != 0) copy_match(out_ + step.to + step.match, step.to_literal, step.size);
  }

 private:
  // giver: the lane from which a lane gets its value, or the lane itself if it has the value.
  // Follows givers to the lane that has the value, and returns that value.
  __device__ __forceinline__ static std::uint32_t take_from_lanes(std::uint32_t value,
                                                                  std::uint32_t giver) {
    for (;;) {
      const std::uint32_t next = __shfl_sync(all_lanes, giver, giver);
      if (!__any_sync(all_lanes, next != giver)) break;
      giver = next;
    }
    return __shfl_sync(all_lanes, value, giver);
  }

  // Bytes that repeat at one distance also repeat at its multiples. So the first bytes are copied
  // singly, and the rest in words from a multiple of the distance that is at least a step.
  __device__ __forceinline__ static void copy_match(Byte* to, std::uint32_t distance,
                                                    std::uint32_t size) {
    constexpr std::uint32_t step = 4 * lane_count;
    const std::uint32_t far = distance >= step ? distance : (step / distance + 1) * distance;
    const std::uint32_t head_size = min(size, far + 4);
    for (std::uint32_t i = this_lane(); i < head_size; i += lane_count)
      store(to + i, load(to - distance + (distance > i ? i : i % distance)));
    __syncwarp();
    if (head_size < size) copy_steps(to + head_size, far, size - head_size);
  }

  __device__ __forceinline__ static void copy_steps(Byte* to, std::uint32_t distance,
                                                    std::uint32_t size) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t head =
        min(size, static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to)) & 3);
    if (lane < head) store(to + lane, load(to + lane - distance));
    __syncwarp();
    to += head;
    size -= head;
    const Words source(to - distance);
    const std::uint32_t word_count = size / 4;
    for (std::uint32_t i = 0; i < word_count; i += lane_count) {
      if (i + lane < word_count)
        store(reinterpret_cast<std::uint32_t*>(to) + i + lane, source.at(4 * (i + lane)));
      __syncwarp();
    }
    const std::uint32_t done = 4 * word_count;
    if (done + lane < size) store(to + done + lane, load(to + done + lane - distance));
    __syncwarp();
  }

  const Byte* const in_;
  Byte* const out_;
};

}  // namespace nacre::engine::cuda::lz4
