// SPDX-License-Identifier: Apache-2.0
// ECB, CTR and CBC decryption, one block per lane. A warp takes tiles of 32 units of 16 blocks and
// keeps the round keys in registers while the message stays the same.
//
// In a tile of one message the warp goes along it, 32 blocks a step. In a tile with several
// messages each unit gets four lanes for four steps. A lane then loads what a message needs at its
// start (above all 44 to 60 words of round keys) once for four blocks. So messages of 16 blocks
// that have a key each are not much slower than long ones.
#include "gpu_engine/cuda/kernels/crypt_parts.cuh"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 512;
constexpr int warps_per_block = threads_per_block / 32;
constexpr std::uint32_t steps_per_tile = crypt_units_per_tile / 2;
static_assert(crypt_units_per_tile == units_per_warp_tile);

// A lane's place within its tile at a step.
struct Place {
  std::uint32_t unit, block;  // the block within the unit

  // In a tile of several messages, units are processed from their end, because CBC may run in
  // place: see ChainedBlocks.
  __device__ Place(bool several_messages, std::uint32_t step, std::uint32_t lane)
      : unit(several_messages ? step / 4 * 8 + lane / 4 : step * 2 + lane / 16),
        block(several_messages ? (3 - step % 4) * 4 + lane % 4 : lane % 16) {}
};

// CBC decryption: finds the ciphertext block before each lane's block. If the message is decrypted
// in place, that block may already be overwritten in memory. So it comes from the neighbouring
// lane, or was kept, or is read before any lane writes there.
struct ChainedBlocks {
  uint4 before_tile;  // the block before lane 0's next block
  uint4 before_unit;  // the block before this lane's unit

  // For a tile of one message: lane 31's block precedes lane 0's of the next step.
  __device__ uint4 along(uint4 in, std::uint32_t lane) {
    const uint4 left = shuffle(in, (lane + 31) % 32);
    const uint4 previous = lane == 0 ? before_tile : left;
    before_tile = shuffle(in, 31);
    return previous;
  }

  // For a tile of several messages. start: the offset of the unit in its message; block: the lane's
  // block within the unit. The four steps of a unit process its blocks from the end, so the blocks
  // before them are still ciphertext. The block before the unit is read at the first step.
  __device__ uint4 within_unit(const CryptMessage& message, bool unit_exists, bool exists,
                               std::uint32_t step, std::uint64_t start, std::uint32_t block,
                               uint4 in, std::uint32_t lane) {
    if (step % 4 == 0) {
      const bool reads = unit_exists && lane % 4 == 0 && lane != 0 && start != 0;
      before_unit = lane == 0 ? before_tile : make_uint4(0, 0, 0, 0);
      if (reads) before_unit = load_block(message.in, start - block_bytes, message.size);
      before_tile = shuffle(in, 31);
    }
    uint4 previous = shuffle(in, (lane + 31) % 32);
    if (lane % 4 == 0) {
      previous = before_unit;
      if (exists && block != 0)
        previous = load_block(message.in, start + (block - 1) * block_bytes, message.size);
    }
    __syncwarp();
    return previous;
  }
};

template <CryptMode mode, bool decrypt, int table_count>
__global__ __launch_bounds__(threads_per_block,
                             1) void crypt_blocks(const CryptTask* __restrict__ tasks,
                                                  TilePlan plan,
                                                  const CipherKeyGroup* __restrict__ expanded,
                                                  const uint4* __restrict__ previous_blocks) {
  extern __shared__ std::uint32_t shared[];
  const SharedTables<table_count> tables(shared,
                                         decrypt ? aes_decryption_table : aes_encryption_table);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t unit_count = plan.first_units[plan.message_count];
  const std::uint32_t tile_count = (unit_count + crypt_units_per_tile - 1) / crypt_units_per_tile;

  std::uint32_t current = UINT32_MAX;
  CryptMessage message = {};
  std::uint32_t first_unit = 0;  // index of the message's first unit
  uint4 keys[15] = {};
  std::uint32_t key_in_registers = no_key;
  std::uint32_t round_count = 0;
  CounterRounds counters;

  for (std::uint32_t tile = blockIdx.x + gridDim.x * (threadIdx.x / 32); tile < tile_count;
       tile += gridDim.x * warps_per_block) {
    const std::uint32_t unit_message = message_of_unit(plan, tile, lane);
    const bool several_messages =
        !__all_sync(all_lanes, unit_message == __shfl_sync(all_lanes, unit_message, 0));
    ChainedBlocks chain = {};
    if (mode == CryptMode::cbc) chain.before_tile = previous_blocks[tile];
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps_per_tile; ++step) {
      const Place place(several_messages, step, lane);
      const std::uint32_t unit = tile * crypt_units_per_tile + place.unit;
      const std::uint32_t index = __shfl_sync(all_lanes, unit_message, place.unit);
      if (index != current) {
        current = index;
        message = load_message(tasks, index);
        first_unit = plan.first_units[index];
        counters.valid = false;
        if (message.key != no_key && message.key != key_in_registers) {
          key_in_registers = message.key;
          const CipherKeyView key(expanded, message.key);
          round_count = key.round_count();
          load_round_keys(keys, decrypt ? key.decrypt() : key.encrypt(), round_count);
        }
      }
      const std::uint64_t start = std::uint64_t{unit - first_unit} * unit_bytes;
      const std::uint64_t offset = start + place.block * block_bytes;
      // ECB and CBC process whole blocks; bytes after the last one are ignored. Without a key all
      // bytes are zeroed.
      const bool any_size = mode == CryptMode::ctr || message.key == no_key;
      const bool active = unit < unit_count &&
                          (any_size ? offset < message.size : offset + block_bytes <= message.size);
      uint4 in = {};
      if (active) in = load_block(message.in, offset, message.size);
      uint4 chained = {};
      if (mode == CryptMode::cbc) {
        chained = several_messages ? chain.within_unit(message, unit < unit_count, active, step,
                                                       start, place.block, in, lane)
                                   : chain.along(in, lane);
        if (offset == 0) chained = message.iv;
      }
      if (!active) continue;
      uint4 out = {};
      if (message.key != no_key) {
        if (mode == CryptMode::ctr) {
          const Counter counter(message.iv, offset / block_bytes);
          out = in ^ next_key_stream(tables, keys, round_count, counter, counters);
        } else {
          out = chained ^ run_rounds<decrypt, 1>(tables, in ^ keys[0], keys, round_count);
        }
      }
      store_block(message.out, offset, message.size, out);
    }
  }
}

// Saves the ciphertext block before each tile: if a message is decrypted in place, another thread
// may overwrite that block before the tile needs it.
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
                   const CipherKeyGroup* keys, const uint4* previous_blocks,
                   const DeviceShape& shape, cudaStream_t stream) {
  const auto kernel = crypt_blocks<mode, decrypt, table_count>;
  constexpr int shared_bytes = shared_tables_bytes<table_count>;
  static_assert(table_count > 2 || shared_bytes <= shared_bytes_least);
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
                        const TilePlanWorkspace& plan, const CipherKeyGroup* keys,
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
                           const TilePlanWorkspace& plan, const CipherKeyGroup* keys,
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
