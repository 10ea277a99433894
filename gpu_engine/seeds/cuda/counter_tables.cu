// SPDX-License-Identifier: Apache-2.0
// AES-128-CTR as Harrison and Waldron compute it (section 4 of their paper): a thread a block, its
// counter from its index, the schedule in constant memory, and the look-up tables of words in
// constant memory, as a texture, in shared memory, or in shared memory with a copy for each bank.
#include "gpu_engine/seeds/aes_constants.h"
#include "gpu_engine/seeds/cuda/device_run.h"

namespace nacre::engine::seeds {
namespace {

using cuda::check;

constexpr int rounds = 10;
constexpr unsigned block_threads = 256;
constexpr unsigned bank_count = 32;

struct RoundTables {
  std::uint32_t words[4][256];
};
constexpr RoundTables make_round_tables() {
  RoundTables tables = {};
  for (int row = 0; row < 4; ++row) {
    for (int x = 0; x < 256; ++x)
      tables.words[row][x] = aes_constants.round[row][x];
  }
  return tables;
}
constexpr RoundTables host_tables = make_round_tables();
__constant__ RoundTables constant_tables = make_round_tables();
__device__ const RoundTables global_tables = make_round_tables();
__constant__ std::uint32_t schedule[4 * (rounds + 1)];
// The first counter block as two numbers, the higher half first.
__constant__ std::uint64_t first_counter[2];

__device__ __forceinline__ std::uint32_t rotate(std::uint32_t word, int bits) {
  return __funnelshift_l(word, word, bits);
}

template <TableMemory memory, TableLayout layout>
struct Lookup {
  const std::uint32_t* shared_words;
  cudaTextureObject_t texture;

  __device__ __forceinline__ std::uint32_t word(int place) const {
    if constexpr (memory == TableMemory::constant) return constant_tables.words[0][place];
    if constexpr (memory == TableMemory::texture) return tex1Dfetch<std::uint32_t>(texture, place);
    if constexpr (memory == TableMemory::shared_copies)
      return shared_words[bank_count * place + threadIdx.x % bank_count];
    return shared_words[place];
  }
  __device__ __forceinline__ std::uint32_t round(int row, std::uint32_t value) const {
    const int byte = value >> 8 * row & 0xff;
    if constexpr (layout == TableLayout::quad) return word(256 * row + byte);
    return rotate(word(byte), 8 * row);
  }
  // SubBytes of a byte is byte 1 of its word.
  __device__ __forceinline__ std::uint32_t substitute(int row, std::uint32_t value) const {
    return (word(value >> 8 * row & 0xff) >> 8 & 0xff) << 8 * row;
  }
};

__device__ __forceinline__ std::uint32_t swap_bytes(std::uint32_t word) {
  return __byte_perm(word, 0, 0x0123);
}

template <TableMemory memory, TableLayout layout>
__global__ void crypt(const uint4* in, uint4* out, std::uint64_t block_count,
                      cudaTextureObject_t texture) {
  constexpr int table_words = layout == TableLayout::quad ? 4 * 256 : 256;
  constexpr bool is_shared = memory == TableMemory::shared || memory == TableMemory::shared_copies;
  constexpr int copies = memory == TableMemory::shared_copies ? bank_count : 1;
  __shared__ std::uint32_t shared_words[is_shared ? copies * table_words : 1];
  if constexpr (is_shared) {
    const std::uint32_t* const from = global_tables.words[0];
    for (int i = threadIdx.x; i < copies * table_words; i += blockDim.x)
      shared_words[i] = from[i / copies];
    __syncthreads();
  }
  const std::uint64_t block = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (block >= block_count) return;
  const Lookup<memory, layout> lookup = {shared_words, texture};
  const std::uint64_t low = first_counter[1] + block;
  const std::uint64_t high = first_counter[0] + (low < block ? 1 : 0);
  std::uint32_t columns[4] = {swap_bytes(static_cast<std::uint32_t>(high >> 32)),
                              swap_bytes(static_cast<std::uint32_t>(high)),
                              swap_bytes(static_cast<std::uint32_t>(low >> 32)),
                              swap_bytes(static_cast<std::uint32_t>(low))};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    columns[i] ^= schedule[i];
#pragma unroll
  for (int round = 1; round < rounds; ++round) {
    std::uint32_t next[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      next[i] = lookup.round(0, columns[i]) ^ lookup.round(1, columns[(i + 1) % 4]) ^
                lookup.round(2, columns[(i + 2) % 4]) ^ lookup.round(3, columns[(i + 3) % 4]) ^
                schedule[4 * round + i];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      columns[i] = next[i];
  }
  const uint4 plain = in[block];
  std::uint32_t stream[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    stream[i] = lookup.substitute(0, columns[i]) ^ lookup.substitute(1, columns[(i + 1) % 4]) ^
                lookup.substitute(2, columns[(i + 2) % 4]) ^
                lookup.substitute(3, columns[(i + 3) % 4]) ^ schedule[4 * rounds + i];
  out[block] = make_uint4(plain.x ^ stream[0], plain.y ^ stream[1], plain.z ^ stream[2],
                          plain.w ^ stream[3]);
}

using Kernel = void (*)(const uint4*, uint4*, std::uint64_t, cudaTextureObject_t);

template <TableLayout layout>
Kernel kernel_of(TableMemory memory) {
  switch (memory) {
    case TableMemory::constant:
      return crypt<TableMemory::constant, layout>;
    case TableMemory::texture:
      return crypt<TableMemory::texture, layout>;
    case TableMemory::shared:
      return crypt<TableMemory::shared, layout>;
    case TableMemory::shared_copies:
      return crypt<TableMemory::shared_copies, TableLayout::single>;
  }
  return nullptr;
}

// The table as a texture, for as long as this object lives.
class Texture {
 public:
  Texture() = default;
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  ~Texture() {
    if (object_ != 0) static_cast<void>(cudaDestroyTextureObject(object_));
  }
  Result<> bind(const cuda::DeviceMemory& words) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = words.data();
    resource.res.linear.desc = cudaCreateChannelDesc<std::uint32_t>();
    resource.res.linear.sizeInBytes = words.size();
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    return check(cudaCreateTextureObject(&object_, &resource, &description, nullptr),
                 "making a texture");
  }
  cudaTextureObject_t get() const { return object_; }

 private:
  cudaTextureObject_t object_ = 0;
};

ByteView table_bytes() {
  return {reinterpret_cast<const Byte*>(host_tables.words), sizeof host_tables.words};
}

std::uint64_t load_big_endian(const Byte* from) {
  std::uint64_t number = 0;
  for (int i = 0; i < 8; ++i)
    number = number << 8 | from[i];
  return number;
}

// --- Reads of the table alone.

constexpr std::uint32_t table_words = 4 * 256;
constexpr std::uint32_t read_grid = 2048;
constexpr std::uint32_t checked_threads = 64;

template <bool random>
__host__ __device__ std::uint32_t next_place(std::uint32_t& state, std::uint32_t step,
                                             std::uint32_t thread, bool all_alike) {
  if (random) {
    state = state * 1664525u + 1013904223u;
    return state >> 22;
  }
  return (step * 32 + (all_alike ? 0 : thread % 32)) % table_words;
}

template <TableMemory memory, bool random>
__global__ void read_table(std::uint32_t step_count, cudaTextureObject_t texture,
                           std::uint32_t* sums) {
  constexpr bool is_shared = memory == TableMemory::shared;
  __shared__ std::uint32_t shared_words[is_shared ? table_words : 1];
  if constexpr (is_shared) {
    for (std::uint32_t i = threadIdx.x; i < table_words; i += blockDim.x)
      shared_words[i] = global_tables.words[0][i];
    __syncthreads();
  }
  const Lookup<memory, TableLayout::quad> lookup = {shared_words, texture};
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t state = thread, sum = 0;
  for (std::uint32_t step = 0; step < step_count; ++step)
    sum += lookup.word(
        static_cast<int>(next_place<random>(state, step, thread, memory == TableMemory::constant)));
  sums[thread] = sum;
}

using ReadKernel = void (*)(std::uint32_t, cudaTextureObject_t, std::uint32_t*);

template <bool random>
ReadKernel read_kernel_of(TableMemory memory) {
  switch (memory) {
    case TableMemory::constant:
      return read_table<TableMemory::constant, random>;
    case TableMemory::texture:
      return read_table<TableMemory::texture, random>;
    case TableMemory::shared:
      return read_table<TableMemory::shared, random>;
    case TableMemory::shared_copies:
      break;
  }
  return nullptr;
}

std::uint32_t expected_sum(TableMemory memory, bool random, std::uint32_t thread,
                           std::uint32_t step_count) {
  const bool all_alike = memory == TableMemory::constant;
  std::uint32_t state = thread, sum = 0;
  for (std::uint32_t step = 0; step < step_count; ++step) {
    const std::uint32_t place = random ? next_place<true>(state, step, thread, all_alike)
                                       : next_place<false>(state, step, thread, all_alike);
    sum += host_tables.words[place / 256][place % 256];
  }
  return sum;
}

}  // namespace

Result<CryptTimes> counter_on_device(TableMemory memory, TableLayout layout, ByteView key,
                                     ByteView first, ByteView in, MutableByteView out,
                                     unsigned repetitions) {
  NACRE_TRY(need_device());
  if (key.size() != 16 || first.size() != 16 || in.empty() || in.size() % 16 != 0 ||
      out.size() < in.size())
    return fail(ErrorCode::invalid_argument,
                "not a key and a counter of 16 bytes and whole blocks");
  std::uint8_t expanded[aes_schedule_bytes_max] = {};
  expand_aes_key(key.data(), key.size(), expanded);
  NACRE_TRY(check(cudaMemcpyToSymbol(schedule, expanded, sizeof schedule),
                  "copying a key to the device"));
  const std::uint64_t counter[2] = {load_big_endian(first.data()),
                                    load_big_endian(first.data() + 8)};
  NACRE_TRY(check(cudaMemcpyToSymbol(first_counter, counter, sizeof counter),
                  "copying a counter to the device"));
  NACRE_ASSIGN(const cuda::DeviceMemory d_table, copy_to_device(table_bytes()));
  Texture texture;
  NACRE_TRY(texture.bind(d_table));
  const Kernel kernel = layout == TableLayout::quad ? kernel_of<TableLayout::quad>(memory)
                                                    : kernel_of<TableLayout::single>(memory);
  const std::uint64_t blocks = in.size() / 16;
  return time_cipher(in, out, repetitions, [&](const Byte* d_in, Byte* d_out, cudaStream_t stream) {
    kernel<<<static_cast<unsigned>((blocks + block_threads - 1) / block_threads), block_threads, 0,
             stream>>>(reinterpret_cast<const uint4*>(d_in), reinterpret_cast<uint4*>(d_out),
                       blocks, texture.get());
    return cudaGetLastError();
  });
}

Result<ReadTimes> table_reads_on_device(TableMemory memory, bool random, std::uint64_t read_count,
                                        unsigned repetitions) {
  NACRE_TRY(need_device());
  const ReadKernel kernel = random ? read_kernel_of<true>(memory) : read_kernel_of<false>(memory);
  if (kernel == nullptr) return fail(ErrorCode::invalid_argument, "not a memory that is read");
  constexpr std::uint64_t threads = std::uint64_t{read_grid} * block_threads;
  const auto steps = static_cast<std::uint32_t>((read_count + threads - 1) / threads);
  NACRE_ASSIGN(const cuda::DeviceMemory d_table, copy_to_device(table_bytes()));
  Texture texture;
  NACRE_TRY(texture.bind(d_table));
  NACRE_ASSIGN(const cuda::DeviceMemory d_sums, cuda::DeviceMemory::allocate(4 * threads));
  NACRE_ASSIGN(const cuda::Stream stream, cuda::Stream::create());
  ReadTimes times = {.read_count = threads * steps};
  NACRE_ASSIGN(times.seconds, device_seconds(stream.get(), repetitions, [&] {
                 kernel<<<read_grid, block_threads, 0, stream.get()>>>(
                     steps, texture.get(), reinterpret_cast<std::uint32_t*>(d_sums.data()));
                 return cudaGetLastError();
               }));
  std::uint32_t sums[checked_threads];
  NACRE_TRY(check(cudaMemcpy(sums, d_sums.data(), sizeof sums, cudaMemcpyDeviceToHost),
                  "copying from the device"));
  for (std::uint32_t thread = 0; thread < checked_threads; ++thread) {
    if (sums[thread] != expected_sum(memory, random, thread, steps))
      return fail(ErrorCode::io, "a read of a table on the device gave something else");
  }
  return times;
}

}  // namespace nacre::engine::seeds
