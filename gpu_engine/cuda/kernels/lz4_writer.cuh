// SPDX-License-Identifier: Apache-2.0
// A warp that writes what a Parser found and checked.
//
// A window's bytes are written 32 at a time, a lane a byte: from the literals,
// from what is written, or (a match may reach into the 32 themselves, or into
// itself) from the lane that has the byte, found by pointer doubling. So no
// match is a special case.
#pragma once

#include "gpu_engine/cuda/kernels/lz4_parser.cuh"

namespace nacre::engine::cuda::lz4 {

__device__ __forceinline__ std::uint32_t or_of_lanes(std::uint32_t bits) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(all_lanes, bits);
#else
  for (std::uint32_t step = 1; step < lane_count; step *= 2)
    bits |= __shfl_xor_sync(all_lanes, bits, step);
  return bits;
#endif
}

class Writer {
 public:
  __device__ explicit Writer(const CodecTask& task) : in_(task.in), out_(task.out) {}

  __device__ __forceinline__ void window(const Step& step) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t up_to_here = all_lanes >> (lane_count - 1 - lane);
    Byte* const out = out_ + step.to;
    std::uint32_t owners = all_lanes;  // begun before this tile, less one
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
  // The value of the lane that giver leads to, over any number of lanes.
  __device__ __forceinline__ static std::uint32_t take_from_lanes(std::uint32_t value,
                                                                  std::uint32_t giver) {
    for (;;) {
      const std::uint32_t next = __shfl_sync(all_lanes, giver, giver);
      if (!__any_sync(all_lanes, next != giver)) break;
      giver = next;
    }
    return __shfl_sync(all_lanes, value, giver);
  }

  // What repeats with one distance repeats with its multiples: once some bytes
  // lie there, words are copied from a multiple that is no less than a step.
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
