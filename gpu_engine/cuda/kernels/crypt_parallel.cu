// SPDX-License-Identifier: Apache-2.0
// ECB, CTR and CBC decryption: a block a lane, half a warp a unit of 16 blocks, so that messages of
// 16 blocks with a key each fill the lanes as well as long ones do. A warp takes tiles of 32 units
// and keeps the round keys in registers while the message stays the same.
//
// CTR: while only the counter's last byte changes, 15 of the first round's 16 lookups and 12 of the
// second round's stay what they were (Park and Lee, "FACE", 2018). A lane keeps their sums; along a
// message its counters change in that byte only for eight steps on end.
#include "gpu_engine/cuda/kernels/aes_rounds.cuh"
#include "gpu_engine/cuda/kernels/crypt_parts.h"
#include "gpu_engine/cuda/kernels/tile_units.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 512;
constexpr int warps_per_block = threads_per_block / 32;
constexpr int steps_per_tile = crypt_units_per_tile / 2;
static_assert(crypt_units_per_tile == units_per_warp_tile);

// The first two rounds of counters that differ in their last byte only.
struct CounterRounds {
  std::uint32_t upper;  // bits 8 to 39 of the counter: more never changes between two steps
  bool valid = false;
  std::uint32_t last_column;  // of the counter plus key, its last byte 0
  std::uint32_t round_1;      // column 0, but for the last byte's lookup
  uint4 round_2;              // but for the lookups in column 0 after round 1

  template <typename Tables>
  __device__ void prepare(const Tables& t, const RoundKeys& keys, uint4 counter) {
    const uint4 s = counter ^ keys.at[0];
    const uint4 key_1 = keys.at[1];
    last_column = s.w;
    round_1 = t.template at<0>(s.x) ^ t.template at<1>(s.y) ^ t.template at<2>(s.z) ^ key_1.x;
    const uint4 m = encrypt_round(t, s, key_1);
    round_2 = keys.at[2];
    round_2.x ^= t.template at<1>(m.y) ^ t.template at<2>(m.z) ^ t.template at<3>(m.w);
    round_2.y ^= t.template at<0>(m.y) ^ t.template at<1>(m.z) ^ t.template at<2>(m.w);
    round_2.z ^= t.template at<0>(m.z) ^ t.template at<1>(m.w) ^ t.template at<3>(m.y);
    round_2.w ^= t.template at<0>(m.w) ^ t.template at<2>(m.y) ^ t.template at<3>(m.z);
  }

  // The state after two rounds. last_byte: the counter's.
  template <typename Tables>
  __device__ uint4 state(const Tables& t, std::uint32_t last_byte) const {
    const std::uint32_t column = round_1 ^ t.template at<3>(last_column ^ last_byte << 24);
    return round_2 ^ make_uint4(t.template at<0>(column), t.template at<3>(column),
                                t.template at<2>(column), t.template at<1>(column));
  }
};

struct Message {
  const Byte* in;
  Byte* out;
  std::uint64_t size;
  std::uint32_t first_unit;
  std::uint32_t key;
  uint4 iv;
};

__device__ Message load_message(const CryptTask& task, std::uint32_t first_unit) {
  return {task.in, task.out, task.size, first_unit, task.key, load_bytes_of_block(task.iv, 16)};
}

// The counter block and, apart, its last byte.
struct Counter {
  std::uint64_t high, low;

  __device__ Counter(uint4 iv, std::uint64_t block) {
    high = std::uint64_t{swap_bytes(iv.x)} << 32 | swap_bytes(iv.y);
    low = std::uint64_t{swap_bytes(iv.z)} << 32 | swap_bytes(iv.w);
    low += block;
    if (low < block) ++high;
  }
  __device__ std::uint32_t upper() const { return static_cast<std::uint32_t>(low >> 8); }
  __device__ std::uint32_t last_byte() const { return static_cast<std::uint32_t>(low) & 0xff; }
  __device__ uint4 block_without_last_byte() const {
    return make_uint4(swap_bytes(static_cast<std::uint32_t>(high >> 32)),
                      swap_bytes(static_cast<std::uint32_t>(high)),
                      swap_bytes(static_cast<std::uint32_t>(low >> 32)),
                      swap_bytes(static_cast<std::uint32_t>(low) & ~0xffu));
  }
};

template <CryptMode mode, bool decrypt, int table_count>
__global__ __launch_bounds__(threads_per_block,
                             1) void crypt_blocks(const CryptTask* __restrict__ tasks,
                                                  TilePlan plan,
                                                  const ExpandedCipherKey* __restrict__ expanded,
                                                  const uint4* __restrict__ previous_blocks) {
  extern __shared__ std::uint32_t shared[];
  const SharedTables<table_count> tables(shared,
                                         decrypt ? aes_decryption_table : aes_encryption_table);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t unit_count = plan.first_units[plan.message_count];
  const std::uint32_t tile_count = (unit_count + crypt_units_per_tile - 1) / crypt_units_per_tile;

  std::uint32_t current = UINT32_MAX;
  Message message = {};
  uint4 keys[15];
  std::uint32_t round_count = 0;
  CounterRounds counters;

  for (std::uint32_t tile = blockIdx.x + gridDim.x * (threadIdx.x / 32); tile < tile_count;
       tile += gridDim.x * warps_per_block) {
    const std::uint32_t unit_message = message_of_unit(plan, tile, lane);
    uint4 previous_step = {};
    if (mode == CryptMode::cbc) previous_step = previous_blocks[tile];
#pragma unroll 1
    for (int step = 0; step < steps_per_tile; ++step) {
      const std::uint32_t place = 2 * step + lane / 16;
      const std::uint32_t unit = tile * crypt_units_per_tile + place;
      const std::uint32_t index = __shfl_sync(all_lanes, unit_message, place);
      if (index != current) {
        current = index;
        message = load_message(tasks[index], plan.first_units[index]);
        counters.valid = false;
        if (message.key != no_key) {
          const ExpandedCipherKey& key = expanded[message.key];
          round_count = key.round_count;
          load_round_keys(keys, decrypt ? key.decrypt : key.encrypt);
        }
      }
      const std::uint64_t block =
          std::uint64_t{unit - message.first_unit} * blocks_per_unit + lane % 16;
      const std::uint64_t offset = block * block_bytes;
      // ECB and CBC take whole blocks; what hangs over is no block, but zeroed where all is.
      const bool any_size = mode == CryptMode::ctr || message.key == no_key;
      const bool active = unit < unit_count &&
                          (any_size ? offset < message.size : offset + block_bytes <= message.size);
      uint4 in = {};
      if (active) in = load_block(message.in, offset, message.size);
      uint4 chained = {};
      if (mode == CryptMode::cbc) {
        const auto from = [&](std::uint32_t word, std::uint32_t word_of_step) {
          const std::uint32_t left = __shfl_up_sync(all_lanes, word, 1);
          return lane == 0 ? word_of_step : left;
        };
        chained = make_uint4(from(in.x, previous_step.x), from(in.y, previous_step.y),
                             from(in.z, previous_step.z), from(in.w, previous_step.w));
        previous_step =
            make_uint4(__shfl_sync(all_lanes, in.x, 31), __shfl_sync(all_lanes, in.y, 31),
                       __shfl_sync(all_lanes, in.z, 31), __shfl_sync(all_lanes, in.w, 31));
        if (block == 0) chained = message.iv;
      }
      if (!active) continue;
      uint4 out = {};
      if (message.key != no_key) {
        if (mode == CryptMode::ctr) {
          const Counter counter(message.iv, block);
          if (!counters.valid || counters.upper != counter.upper()) {
            counters.valid = true;
            counters.upper = counter.upper();
            counters.prepare(tables, expanded[message.key].encrypt,
                             counter.block_without_last_byte());
          }
          out = in ^ run_rounds<false, 3>(tables, counters.state(tables, counter.last_byte()), keys,
                                          round_count);
        } else {
          out = chained ^ run_rounds<decrypt, 1>(tables, in ^ keys[0], keys, round_count);
        }
      }
      store_block(message.out, offset, message.size, out);
    }
  }
}

// In place, a tile's last block may be overwritten before the next tile reads it.
__global__ void save_previous_blocks(const CryptTask* tasks, TilePlan plan, uint4* previous) {
  const std::uint32_t unit_count = plan.first_units[plan.message_count];
  const std::uint32_t tile_count = (unit_count + crypt_units_per_tile - 1) / crypt_units_per_tile;
  for (std::uint32_t tile = blockIdx.x * blockDim.x + threadIdx.x; tile < tile_count;
       tile += gridDim.x * blockDim.x) {
    const std::uint32_t index = plan.tile_messages[tile];
    const CryptTask& task = tasks[index];
    const std::uint64_t offset =
        std::uint64_t{tile * crypt_units_per_tile - plan.first_units[index]} * unit_bytes;
    if (offset != 0 && offset <= task.size)
      previous[tile] = load_block(task.in, offset - block_bytes, task.size);
  }
}

template <CryptMode mode, bool decrypt, int table_count>
cudaError_t launch(const CryptTask* tasks, const TilePlanWorkspace& plan,
                   const ExpandedCipherKey* keys, const uint4* previous_blocks,
                   const DeviceShape& shape, cudaStream_t stream) {
  const auto kernel = crypt_blocks<mode, decrypt, table_count>;
  constexpr int shared_bytes = shared_tables_bytes<table_count>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<std::uint32_t>(
      plan.tiles_max < static_cast<std::uint64_t>(shape.multiprocessors) ? plan.tiles_max
                                                                         : shape.multiprocessors);
  kernel<<<blocks, threads_per_block, shared_bytes, stream>>>(tasks, plan.plan, keys,
                                                              previous_blocks);
  return cudaGetLastError();
}

template <int table_count>
cudaError_t launch_mode(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                        const TilePlanWorkspace& plan, const ExpandedCipherKey* keys,
                        const uint4* previous_blocks, const DeviceShape& shape,
                        cudaStream_t stream) {
  switch (mode) {
    case CryptMode::ctr:
      return launch<CryptMode::ctr, false, table_count>(tasks, plan, keys, previous_blocks, shape,
                                                        stream);
    case CryptMode::cbc:
      return launch<CryptMode::cbc, true, table_count>(tasks, plan, keys, previous_blocks, shape,
                                                       stream);
    default:
      return direction == CryptDirection::encrypt
                 ? launch<CryptMode::ecb, false, table_count>(tasks, plan, keys, previous_blocks,
                                                              shape, stream)
                 : launch<CryptMode::ecb, true, table_count>(tasks, plan, keys, previous_blocks,
                                                             shape, stream);
  }
}

}  // namespace

cudaError_t crypt_parallel(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                           const TilePlanWorkspace& plan, const ExpandedCipherKey* keys,
                           uint4* previous_blocks, cudaStream_t stream) {
  DeviceShape shape;
  const cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  if (mode == CryptMode::cbc) {
    save_previous_blocks<<<256, 256, 0, stream>>>(tasks, plan.plan, previous_blocks);
  }
  if (shape.shared_bytes_max >= shared_tables_bytes<4>)
    return launch_mode<4>(mode, direction, tasks, plan, keys, previous_blocks, shape, stream);
  return launch_mode<2>(mode, direction, tasks, plan, keys, previous_blocks, shape, stream);
}

}  // namespace nacre::engine::cuda
