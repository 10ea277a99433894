// SPDX-License-Identifier: Apache-2.0
// CRC-32 as Tosoni and Sorio compute it: for each byte of the message a word is looked up in that
// byte's own table, and then all words are XORed (sections IV and VI of their paper).
//
// Table k holds what a byte adds to the remainder when k bytes follow it:
// T[k+1][b] = T[k][b] >> 8 ^ T[0][T[k][b] & 0xff]. The initial value is xored into the first four
// bytes, and the final one into the result.
#include <chrono>

#include "gpu_engine/seeds/crc_plain.h"
#include "gpu_engine/seeds/cuda/device_run.h"

namespace nacre::engine::seeds {
namespace {

using cuda::check;
using cuda::DeviceMemory;

constexpr std::uint32_t table_words = 256;
__constant__ CrcTable device_table = make_crc_table();

__device__ std::uint32_t starting_byte(const Byte* message, std::uint64_t at) {
  return message[at] ^ (at < 4 ? 0xffu : 0u);
}

__global__ void look_up(const Byte* message, std::uint64_t size, const std::uint32_t* tables,
                        std::uint32_t* words) {
  const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at < size) words[at] = tables[table_words * (size - 1 - at) + starting_byte(message, at)];
}

// a b mod P, in reflected order: x^0 is the highest bit.
__device__ std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    if ((a >> bit & 1) != 0) product ^= b;
    b = b >> 1 ^ ((b & 1) != 0 ? crc32_polynomial : 0);
  }
  return product;
}

// Without tables: the byte's remainder bit by bit, times x^(8 k) by squaring.
__global__ void compute(const Byte* message, std::uint64_t size, std::uint32_t* words) {
  const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= size) return;
  std::uint32_t word = starting_byte(message, at);
  for (int bit = 0; bit < 8; ++bit)
    word = word >> 1 ^ ((word & 1) != 0 ? crc32_polynomial : 0);
  std::uint32_t square = 1u << 23;  // x^8
  for (std::uint64_t left = size - 1 - at; left != 0; left >>= 1) {
    if ((left & 1) != 0) word = multiply(word, square);
    square = multiply(square, square);
  }
  words[at] = word;
}

// One table after the other; the 256 words of each are contiguous.
__global__ void make_tables(std::uint32_t* tables, std::uint64_t count) {
  __shared__ std::uint32_t first[table_words];
  first[threadIdx.x] = device_table.words[threadIdx.x];
  __syncthreads();
  std::uint32_t word = first[threadIdx.x];
  for (std::uint64_t table = 0; table < count; ++table) {
    tables[table_words * table + threadIdx.x] = word;
    word = word >> 8 ^ first[word & 0xff];
  }
}

// A block reduces its words to one. halves: each thread begins with two.
template <bool halves>
__global__ void reduce(const std::uint32_t* words, std::uint64_t count, std::uint32_t* reduced) {
  extern __shared__ std::uint32_t shared_words[];
  const std::uint64_t span = std::uint64_t{blockDim.x} * (halves ? 2 : 1);
  const std::uint64_t at = blockIdx.x * span + threadIdx.x;
  std::uint32_t word = at < count ? words[at] : 0;
  if (halves && at + blockDim.x < count) word ^= words[at + blockDim.x];
  shared_words[threadIdx.x] = word;
  for (unsigned left = blockDim.x / 2; left > 0; left /= 2) {
    __syncthreads();
    if (threadIdx.x < left) shared_words[threadIdx.x] ^= shared_words[threadIdx.x + left];
  }
  if (threadIdx.x == 0) reduced[blockIdx.x] = shared_words[0];
}

constexpr unsigned block_threads(std::uint64_t size) {
  // 128^2 and 128^3 bytes take blocks of 128 threads, 256^2 bytes of 256.
  return size == 256 * 256 ? 256 : 128;
}

class CrcRun {
 public:
  CrcRun(CrcWay way, ByteView message, unsigned repetitions)
      : way_(way), message_(message), repetitions_(repetitions), block_(block_threads(size())) {}

  Result<CrcOutcome> run() {
    NACRE_ASSIGN(stream_, cuda::Stream::create());
    NACRE_ASSIGN(d_message_, DeviceMemory::allocate(size()));
    NACRE_ASSIGN(d_words_, DeviceMemory::allocate(4 * size()));
    NACRE_ASSIGN(d_reduced_, DeviceMemory::allocate(4 * size()));
    NACRE_ASSIGN(pinned_, cuda::allocate_pinned_arena(size() + 4 * size()));
    std::copy(message_.begin(), message_.end(), pinned_.data());
    words_ = reinterpret_cast<std::uint32_t*>(pinned_.data() + size());
    NACRE_TRY(make_the_tables());
    NACRE_TRY(measure());
    return outcome_;
  }

 private:
  std::uint64_t size() const { return message_.size(); }
  bool is_reduced() const { return way_ != CrcWay::host_xor; }

  Result<> make_the_tables() {
    if (way_ == CrcWay::without_tables) return {};
    const std::uint64_t bytes = 4 * std::uint64_t{table_words} * size();
    outcome_.times.table_bytes = bytes;
    NACRE_ASSIGN(d_tables_, DeviceMemory::allocate(bytes));
    auto* const tables = reinterpret_cast<std::uint32_t*>(d_tables_.data());
    if (way_ == CrcWay::table_on_device) {
      NACRE_ASSIGN(outcome_.times.tables, host_seconds(stream_.get(), 1, [&] {
                     make_tables<<<1, table_words, 0, stream_.get()>>>(tables, size());
                     return cudaGetLastError();
                   }));
      return {};
    }
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::uint32_t> made(bytes / 4);
    const CrcTable first = make_crc_table();
    std::copy_n(first.words, table_words, made.begin());
    for (std::size_t i = table_words; i < made.size(); ++i) {
      const std::uint32_t before = made[i - table_words];
      made[i] = before >> 8 ^ first.words[before & 0xff];
    }
    NACRE_TRY(check(cudaMemcpy(tables, made.data(), bytes, cudaMemcpyHostToDevice),
                    "copying tables to the device"));
    outcome_.times.tables =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {};
  }

  cudaError_t copy_in() {
    return cudaMemcpyAsync(d_message_.data(), pinned_.data(), size(), cudaMemcpyHostToDevice,
                           stream_.get());
  }

  cudaError_t launch_words() {
    const auto blocks = static_cast<unsigned>((size() + block_ - 1) / block_);
    auto* const words = reinterpret_cast<std::uint32_t*>(d_words_.data());
    if (way_ == CrcWay::without_tables)
      compute<<<blocks, block_, 0, stream_.get()>>>(d_message_.data(), size(), words);
    else
      look_up<<<blocks, block_, 0, stream_.get()>>>(
          d_message_.data(), size(), reinterpret_cast<const std::uint32_t*>(d_tables_.data()),
          words);
    return cudaGetLastError();
  }

  cudaError_t launch_reduction() {
    auto* from = reinterpret_cast<std::uint32_t*>(d_words_.data());
    auto* to = reinterpret_cast<std::uint32_t*>(d_reduced_.data());
    const bool halves = way_ != CrcWay::reduction;
    const unsigned threads = halves ? block_ / 2 : block_;
    std::uint64_t count = size();
    do {
      const auto blocks = static_cast<unsigned>((count + block_ - 1) / block_);
      if (halves)
        reduce<true><<<blocks, threads, 4 * threads, stream_.get()>>>(from, count, to);
      else
        reduce<false><<<blocks, threads, 4 * threads, stream_.get()>>>(from, count, to);
      count = blocks;
      std::swap(from, to);
    } while (count > 1);
    d_result_ = from;
    return cudaGetLastError();
  }

  cudaError_t copy_out() {
    return cudaMemcpyAsync(words_, is_reduced() ? static_cast<void*>(d_result_) : d_words_.data(),
                           is_reduced() ? 4 : 4 * size(), cudaMemcpyDeviceToHost, stream_.get());
  }

  // The host's part once the words are copied: XORs all of them, or takes the only one.
  cudaError_t finish() {
    const cudaError_t error = cudaStreamSynchronize(stream_.get());
    std::uint32_t crc = 0;
    for (std::uint64_t i = 0; i < (is_reduced() ? 1 : size()); ++i)
      crc ^= words_[i];
    outcome_.crc = ~crc;
    return error;
  }

  cudaError_t all_steps(bool with_copy_in) {
    cudaError_t error = with_copy_in ? copy_in() : cudaSuccess;
    if (error == cudaSuccess) error = launch_words();
    if (error == cudaSuccess && is_reduced()) error = launch_reduction();
    if (error == cudaSuccess) error = copy_out();
    if (error == cudaSuccess) error = finish();
    return error;
  }

  Result<> measure() {
    CrcTimes& times = outcome_.times;
    const auto on_device = [&](auto step) {
      return device_seconds(stream_.get(), repetitions_, [&, step] { return (this->*step)(); });
    };
    NACRE_ASSIGN(times.copy_in, on_device(&CrcRun::copy_in));
    NACRE_ASSIGN(times.crc_kernel, on_device(&CrcRun::launch_words));
    if (is_reduced()) {
      NACRE_ASSIGN(times.xor_kernel, on_device(&CrcRun::launch_reduction));
    } else {
      NACRE_ASSIGN(times.xor_kernel,
                   host_seconds(stream_.get(), repetitions_, [&] { return finish(); }));
    }
    NACRE_ASSIGN(times.copy_out, on_device(&CrcRun::copy_out));
    NACRE_ASSIGN(times.whole,
                 host_seconds(stream_.get(), repetitions_, [&] { return all_steps(false); }));
    NACRE_ASSIGN(times.whole_with_copies,
                 host_seconds(stream_.get(), repetitions_, [&] { return all_steps(true); }));
    return {};
  }

  const CrcWay way_;
  const ByteView message_;
  const unsigned repetitions_;
  const unsigned block_;
  cuda::Stream stream_;
  DeviceMemory d_message_, d_words_, d_reduced_, d_tables_;
  Arena pinned_;
  std::uint32_t* words_ = nullptr;     // page-locked
  std::uint32_t* d_result_ = nullptr;  // where the reduction leaves it
  CrcOutcome outcome_;
};

}  // namespace

Result<CrcOutcome> crc_on_device(CrcWay way, ByteView message, unsigned repetitions) {
  NACRE_TRY(need_device());
  if (message.size() < 4) return fail(ErrorCode::invalid_argument, "less than four bytes");
  return CrcRun(way, message, repetitions).run();
}

}  // namespace nacre::engine::seeds
