// SPDX-License-Identifier: Apache-2.0
// ECB, CTR and CBC decryption with DES, bitsliced: 32 blocks per thread, 1,024 per warp and tile.
// des_sliced.h derives a round.
//
// In a tile that lies entirely in one message, 8 KiB, neighbouring lanes take neighbouring pairs of
// blocks, so that their accesses are adjacent. The key's masks then lie in the warp's shared memory
// and are loaded four at a time. In any other tile each lane has a unit of 32 neighbouring blocks,
// which may belong to a message of its own. It makes the masks from its key's bits when they are
// needed, at one instruction more for each of the 48 masks of a round.
//
// Counted are the instructions on the integer pipe, where LOP3 runs (16.5e12 lanes a second on an
// H200), for the 256 bytes of a thread: 16 rounds with 203 for the S-boxes and 48 others, two
// whitenings of 32, and four transpositions of some 208 (CTR: two, and 220 for the counters). That
// is 4,912, so 860 GB/s. Measured on an H200, 2026-11-22, messages of 64 KiB: ECB 741 GB/s, 3DES
// 295.
#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/des.h"
#include "gpu_engine/cuda/kernels/des_sliced.h"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 128;
constexpr int warps_per_block = threads_per_block / 32;
constexpr int blocks_per_multiprocessor = 4;
constexpr std::uint32_t tile_bytes = des_units_per_tile * des_unit_bytes;
static_assert(des_units_per_tile == units_per_warp_tile);

// Words of shared memory for one key: 48 a round, then 32 for each whitening.
constexpr int words_per_round = 48;
__host__ __device__ constexpr int mask_words(int pass_count) {
  return words_per_round * des_rounds_per_pass * pass_count + 32 * (pass_count + 1);
}

// A key's masks as words in shared memory, for all lanes of a warp.
class SharedDesMasks {
 public:
  __device__ SharedDesMasks(std::uint32_t* words, int pass_count)
      : words_(words), pass_count_(pass_count) {}

  // All lanes of the warp call it.
  __device__ void fill(const DesSchedule& schedule, std::uint32_t lane) {
    __syncwarp();
    const int rounds = des_rounds_per_pass * pass_count_;
    const auto mask = [lane](std::uint32_t bits) { return 0u - (bits >> lane & 1); };
    for (int round = 0; round < rounds; ++round) {
      const DesRoundMasks bits = schedule.rounds[round];
      words_[words_per_round * round + lane] = mask(bits.folds);
      if (lane < 16) words_[words_per_round * round + 32 + lane] = mask(bits.edges);
    }
    for (int i = 0; i <= pass_count_; ++i)
      words_[words_per_round * rounds + 32 * i + lane] = mask(schedule.whitening[i]);
    __syncwarp();
  }

  struct Round {
    const std::uint32_t* words;
    template <int box>
    __device__ DesBoxMasks box_masks() const {
      const uint4 folds = reinterpret_cast<const uint4*>(words)[box];
      const uint2 edges = reinterpret_cast<const uint2*>(words + 32)[box];
      return {{folds.x, folds.y, folds.z, folds.w}, edges.x, edges.y};
    }
  };
  __device__ Round round(int number) const { return {words_ + words_per_round * number}; }
  template <int bit>
  __device__ std::uint32_t whitening(int pass) const {
    return words_[words_per_round * des_rounds_per_pass * pass_count_ + 32 * pass + bit];
  }

 private:
  std::uint32_t* words_;
  int pass_count_;
};

struct Message {
  const Byte* in;
  Byte* out;
  std::uint64_t size;
  std::uint32_t key;
  std::uint32_t first_unit;
  uint2 iv;
};

__device__ Message load_message(const CryptTask* tasks, const TilePlan& plan, std::uint32_t index) {
  const CryptTask& task = tasks[index];
  return {task.in,
          task.out,
          task.size,
          task.key,
          plan.first_units[index],
          make_uint2(load_bytes(task.iv, 4), load_bytes(task.iv + 4, 4))};
}

// A thread's 32 blocks in a message. Block j lies at first + 8 * Blocks::place(j).
template <typename Blocks>
struct Place {
  std::uint64_t first;
  std::uint64_t size;  // how many bytes of the message are processed
  bool in_vectors;     // all blocks lie within size, and each pair of them at a multiple of 16

  __device__ Place(const Message& message, std::uint64_t first, bool whole_blocks)
      : first(first),
        size(whole_blocks ? message.size / des_block_bytes * des_block_bytes : message.size) {
    constexpr std::uint64_t span = (Blocks::place(31) + 1) * des_block_bytes;
    in_vectors = first + span <= size &&
                 (alignment_of(message.in) | alignment_of(message.out)) == 0 && first % 16 == 0;
  }
  __device__ std::uint64_t offset(int j) const {
    return first + Blocks::place(j) * std::uint64_t{des_block_bytes};
  }
};

template <typename Blocks>
__device__ void load_blocks(const Byte* in, const Place<Blocks>& place,
                            std::uint32_t (&words)[64]) {
  __builtin_assume(__isGlobal(in));
  if (place.in_vectors) {
#pragma unroll
    for (int j = 0; j < 32; j += 2) {
      const uint4 pair = *reinterpret_cast<const uint4*>(in + place.offset(j));
      words[j] = pair.x;
      words[32 + j] = pair.y;
      words[j + 1] = pair.z;
      words[32 + j + 1] = pair.w;
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < 32; ++j) {
    const uint2 block = load_des_block(in, place.offset(j), place.size);
    words[j] = block.x;
    words[32 + j] = block.y;
  }
}

template <typename Blocks>
__device__ void store_blocks(Byte* out, const Place<Blocks>& place,
                             const std::uint32_t (&words)[64]) {
  __builtin_assume(__isGlobal(out));
  if (place.in_vectors) {
#pragma unroll
    for (int j = 0; j < 32; j += 2)
      *reinterpret_cast<uint4*>(out + place.offset(j)) =
          make_uint4(words[j], words[32 + j], words[j + 1], words[32 + j + 1]);
    return;
  }
#pragma unroll
  for (int j = 0; j < 32; ++j)
    store_des_block(out, place.offset(j), place.size, make_uint2(words[j], words[32 + j]));
}

// XORs the message's bytes into words.
template <typename Blocks>
__device__ void add_blocks(const Byte* in, const Place<Blocks>& place, std::uint32_t (&words)[64]) {
  __builtin_assume(__isGlobal(in));
  if (place.in_vectors) {
#pragma unroll
    for (int j = 0; j < 32; j += 2) {
      const uint4 pair = *reinterpret_cast<const uint4*>(in + place.offset(j));
      words[j] ^= pair.x;
      words[32 + j] ^= pair.y;
      words[j + 1] ^= pair.z;
      words[32 + j + 1] ^= pair.w;
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < 32; ++j) {
    const uint2 block = load_des_block(in, place.offset(j), place.size);
    words[j] ^= block.x;
    words[32 + j] ^= block.y;
  }
}

// XORs into words, for each block, the ciphertext block before it. before: the block before block
// 0. It is passed in because it may already be overwritten if the message is decrypted in place.
// The tile itself is intact, since no lane has written yet.
template <typename Blocks>
__device__ void add_previous_blocks(const Byte* in, const Place<Blocks>& place, uint2 before,
                                    std::uint32_t (&words)[64]) {
  __builtin_assume(__isGlobal(in));
  words[0] ^= before.x;
  words[32] ^= before.y;
#pragma unroll
  for (int j = 1; j < 32; ++j) {
    const std::uint64_t offset = place.offset(j) - des_block_bytes;
    const uint2 block = place.in_vectors ? *reinterpret_cast<const uint2*>(in + offset)
                                         : load_des_block(in, offset, place.size);
    words[j] ^= block.x;
    words[32 + j] ^= block.y;
  }
}

// Loads a thread's blocks, encrypts or decrypts them, and leaves the result in words.
// begins_tile: block 0 is the tile's first. tile_before: for CBC, the block before the tile.
template <CryptMode mode, typename Blocks, typename Masks>
__device__ void crypt_blocks(const Message& message, const Place<Blocks>& place, const Masks& masks,
                             int pass_count, bool begins_tile, const uint2* tile_before,
                             std::uint32_t (&words)[64]) {
  DesSlices slices;
  if constexpr (mode == CryptMode::ctr) {
    const std::uint64_t counter =
        std::uint64_t{swap_bytes(message.iv.x)} << 32 | swap_bytes(message.iv.y);
    slice_counters<Blocks>(counter + place.first / des_block_bytes, slices);
  } else {
    load_blocks(message.in, place, words);
    slice_blocks(words, slices);
  }
  run_des_passes(slices, masks, pass_count);
  unslice_blocks(slices, words);
  if constexpr (mode == CryptMode::ctr) add_blocks(message.in, place, words);
  if constexpr (mode == CryptMode::cbc) {
    uint2 before = message.iv;
    if (place.first != 0)
      before = begins_tile ? *tile_before
                           : load_des_block(message.in, place.first - des_block_bytes, place.size);
    add_previous_blocks(message.in, place, before, words);
  }
}

template <CryptMode mode, int pass_count>
__global__ __launch_bounds__(threads_per_block, blocks_per_multiprocessor) void des_blocks(
    const CryptTask* __restrict__ tasks, TilePlan plan, const DesKey* __restrict__ keys,
    bool decrypts, const uint2* __restrict__ previous_blocks) {
  extern __shared__ uint4 shared[];
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  SharedDesMasks masks(reinterpret_cast<std::uint32_t*>(shared) + mask_words(pass_count) * warp,
                       pass_count);
  std::uint32_t key_in_masks = no_key;
  const auto schedule_of = [&](std::uint32_t key) -> const DesSchedule& {
    return decrypts ? keys[key].decrypt : keys[key].encrypt;
  };
  const std::uint32_t unit_count = plan.first_units[plan.message_count];
  const std::uint32_t tile_count = (unit_count + des_units_per_tile - 1) / des_units_per_tile;
  constexpr bool whole_blocks = mode != CryptMode::ctr;

  for (std::uint32_t tile = blockIdx.x + gridDim.x * warp; tile < tile_count;
       tile += gridDim.x * warps_per_block) {
    const std::uint32_t index = message_of_unit(plan, tile, lane);
    const std::uint32_t unit = tile * des_units_per_tile + lane;
    const Message message = load_message(tasks, plan, index);
    const bool one_message = __all_sync(all_lanes, index == __shfl_sync(all_lanes, index, 0));
    const std::uint64_t tile_start =
        std::uint64_t{tile * des_units_per_tile - message.first_unit} * des_unit_bytes;
    std::uint32_t words[64] = {};
    if (one_message && message.key != no_key && tile_start + tile_bytes <= message.size) {
      if (message.key != key_in_masks) {
        key_in_masks = message.key;
        masks.fill(schedule_of(message.key), lane);
      }
      const Place<InterleavedBlocks> place(message, tile_start + 16 * lane, whole_blocks);
      crypt_blocks<mode>(message, place, masks, pass_count, lane == 0, previous_blocks + tile,
                         words);
      __syncwarp();
      store_blocks(message.out, place, words);
    } else {
      const std::uint64_t start = std::uint64_t{unit - message.first_unit} * des_unit_bytes;
      // Without a key, zeros are written to all bytes, those after the last whole block included.
      const Place<NeighbouringBlocks> place(message, start, whole_blocks && message.key != no_key);
      if (unit < unit_count && message.key != no_key)
        crypt_blocks<mode>(message, place, PackedDesMasks(schedule_of(message.key)), pass_count,
                           lane == 0, previous_blocks + tile, words);
      __syncwarp();
      if (unit < unit_count) store_blocks(message.out, place, words);
    }
  }
}

// Saves the ciphertext block before each tile: if a message is decrypted in place, another thread
// may overwrite that block before the tile needs it.
__global__ void save_previous_blocks(const CryptTask* tasks, TilePlan plan, uint2* previous) {
  const std::uint32_t unit_count = plan.first_units[plan.message_count];
  const std::uint32_t tile_count = (unit_count + des_units_per_tile - 1) / des_units_per_tile;
  for (std::uint32_t tile = blockIdx.x * blockDim.x + threadIdx.x; tile < tile_count;
       tile += gridDim.x * blockDim.x) {
    const std::uint32_t index = plan.tile_messages[tile];
    const CryptTask& task = tasks[index];
    const std::uint64_t offset =
        std::uint64_t{tile * des_units_per_tile - plan.first_units[index]} * des_unit_bytes;
    if (offset != 0 && offset <= task.size)
      previous[tile] = load_des_block(task.in, offset - des_block_bytes, task.size);
  }
}

template <CryptMode mode, int pass_count>
cudaError_t launch(const CryptTask* tasks, const TilePlanWorkspace& plan, const DesKey* keys,
                   bool decrypts, const uint2* previous_blocks, cudaStream_t stream) {
  DeviceShape shape;
  cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  constexpr int shared_bytes =
      mask_words(pass_count) * static_cast<int>(sizeof(std::uint32_t)) * warps_per_block;
  static_assert(shared_bytes <= 48 * 1024);
  const auto blocks_max =
      std::uint64_t{blocks_per_multiprocessor} * static_cast<unsigned>(shape.multiprocessors);
  const auto blocks =
      static_cast<std::uint32_t>(plan.tiles_max < blocks_max ? plan.tiles_max : blocks_max);
  des_blocks<mode, pass_count><<<blocks, threads_per_block, shared_bytes, stream>>>(
      tasks, plan.plan, keys, decrypts, previous_blocks);
  return cudaGetLastError();
}

template <int pass_count>
cudaError_t launch_mode(CryptMode mode, bool decrypts, const CryptTask* tasks,
                        const TilePlanWorkspace& plan, const DesKey* keys,
                        const uint2* previous_blocks, cudaStream_t stream) {
  switch (mode) {
    case CryptMode::ctr:
      return launch<CryptMode::ctr, pass_count>(tasks, plan, keys, false, previous_blocks, stream);
    case CryptMode::cbc:
      return launch<CryptMode::cbc, pass_count>(tasks, plan, keys, true, previous_blocks, stream);
    default:
      return launch<CryptMode::ecb, pass_count>(tasks, plan, keys, decrypts, previous_blocks,
                                                stream);
  }
}

}  // namespace

cudaError_t des_crypt_parallel(int pass_count, CryptMode mode, CryptDirection direction,
                               const CryptTask* tasks, const TilePlanWorkspace& plan,
                               const DesKey* keys, uint2* previous_blocks, cudaStream_t stream) {
  if (mode == CryptMode::cbc)
    save_previous_blocks<<<256, 256, 0, stream>>>(tasks, plan.plan, previous_blocks);
  const bool decrypts = direction == CryptDirection::decrypt;
  return pass_count == 1
             ? launch_mode<1>(mode, decrypts, tasks, plan, keys, previous_blocks, stream)
             : launch_mode<3>(mode, decrypts, tasks, plan, keys, previous_blocks, stream);
}

}  // namespace nacre::engine::cuda
