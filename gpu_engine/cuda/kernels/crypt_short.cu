// SPDX-License-Identifier: Apache-2.0
// CTR over messages of at most 16 blocks, which need no tile plan.
//
// Besides its rounds, the start of such a message costs time: loading the task and 44 to 60 words
// of round keys, and computing what the counters share of the first two rounds. Two lanes process a
// message, so each lane pays the start once for eight blocks. For memory accesses four neighbouring
// lanes would be better: two lanes touch twice as many cache lines at a time. So the four lanes of
// two neighbouring messages, a and b, compute two key stream blocks each and exchange one of them.
// Then they access four blocks of a in a row, and four of b.
//
//   lane of four    computes        has after the exchange
//        0          a0  a2          a0  b0
//        1          a1  a3          a1  b1
//        2          b0  b2          a2  b2
//        3          b1  b3          a3  b3
#include "gpu_engine/cuda/kernels/crypt_parts.cuh"
#include "gpu_engine/cuda/kernels/launch.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 512;
constexpr int warps_per_block = threads_per_block / 32;
constexpr std::uint32_t messages_of_warp = 16;
constexpr std::uint32_t partner =
    2;  // XORed to a lane's number: the same lane of the other message

// Where a message's blocks are read and written. `in` is 0 for a message without a key, whose
// output is zeros.
struct Place {
  std::uint64_t in, out;
  std::uint32_t size;

  __device__ Place of_partner() const {
    return {__shfl_xor_sync(all_lanes, in, partner), __shfl_xor_sync(all_lanes, out, partner),
            __shfl_xor_sync(all_lanes, size, partner)};
  }
  __device__ uint4 load(std::uint32_t offset) const {
    if (in == 0 || offset >= size) return make_uint4(0, 0, 0, 0);
    return load_block(reinterpret_cast<const Byte*>(in), offset, size);
  }
  __device__ void store(std::uint32_t offset, uint4 block) const {
    if (offset < size) store_block(reinterpret_cast<Byte*>(out), offset, size, block);
  }
};

template <int table_count>
__global__ __launch_bounds__(threads_per_block,
                             1) void crypt_counters(const CryptTask* __restrict__ tasks,
                                                    std::uint32_t count,
                                                    const CipherKeyGroup* __restrict__ expanded) {
  extern __shared__ std::uint32_t shared[];
  const SharedTables<table_count> tables(shared, aes_encryption_table);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t half = lane / partner % 2;
  const std::uint32_t group_count = (count + messages_of_warp - 1) / messages_of_warp;
  uint4 keys[15] = {};
  std::uint32_t key_in_registers = no_key;
  std::uint32_t round_count = 0;

  for (std::uint32_t group = blockIdx.x + gridDim.x * (threadIdx.x / 32); group < group_count;
       group += gridDim.x * warps_per_block) {
    const std::uint32_t index = group * messages_of_warp + lane / 2;
    const CryptMessage message = load_message(tasks, index < count ? index : count - 1);
    if (message.key != no_key && message.key != key_in_registers) {
      key_in_registers = message.key;
      const CipherKeyView key(expanded, message.key);
      round_count = key.round_count();
      load_round_keys(keys, key.encrypt(), round_count);
    }
    const Place own = {message.key == no_key ? 0 : reinterpret_cast<std::uint64_t>(message.in),
                       reinterpret_cast<std::uint64_t>(message.out),
                       index < count ? static_cast<std::uint32_t>(message.size) : 0};
    const Place other = own.of_partner();
    const Place a = half == 0 ? own : other, b = half == 0 ? other : own;
    Counter counter(message.iv, lane % 2);
    CounterRounds rounds;
#pragma unroll 1
    for (std::uint32_t offset = lane % 4 * block_bytes; offset < unit_bytes;
         offset += 4 * block_bytes) {
      if (!__any_sync(all_lanes, offset < a.size || offset < b.size)) break;
      const uint4 in_a = a.load(offset), in_b = b.load(offset);
      uint4 kept = {}, sent = {};
#pragma unroll 1
      for (std::uint32_t step = 0; step < 2; ++step) {
        uint4 stream = make_uint4(0, 0, 0, 0);
        if (message.key != no_key)
          stream = next_key_stream(tables, keys, round_count, counter, rounds);
        counter.skip(2);
        if (step == half)
          kept = stream;
        else
          sent = stream;
      }
      const uint4 got = shuffle(sent, lane ^ partner);
      a.store(offset, in_a ^ (half == 0 ? kept : got));
      b.store(offset, in_b ^ (half == 0 ? got : kept));
    }
  }
}

template <int table_count>
cudaError_t launch(const CryptTask* tasks, std::uint32_t count, const CipherKeyGroup* keys,
                   const DeviceShape& shape, cudaStream_t stream) {
  const auto kernel = crypt_counters<table_count>;
  constexpr int shared_bytes = shared_tables_bytes<table_count>;
  static_assert(table_count > 2 || shared_bytes <= shared_bytes_least);
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) return error;
  const std::uint32_t group_count = (count + messages_of_warp - 1) / messages_of_warp;
  const auto blocks_max = static_cast<std::uint32_t>(shape.multiprocessors);
  const std::uint32_t blocks = group_count < blocks_max ? group_count : blocks_max;
  kernel<<<blocks, threads_per_block, shared_bytes, stream>>>(tasks, count, keys);
  return cudaGetLastError();
}

}  // namespace

cudaError_t crypt_short_counters(const CryptTask* tasks, std::uint32_t count,
                                 const CipherKeyGroup* keys, cudaStream_t stream) {
  DeviceShape shape;
  const cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  return shape.shared_bytes_max >= shared_tables_bytes<4>
             ? launch<4>(tasks, count, keys, shape, stream)
             : launch<2>(tasks, count, keys, shape, stream);
}

}  // namespace nacre::engine::cuda
