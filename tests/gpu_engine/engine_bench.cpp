// SPDX-License-Identifier: Apache-2.0
// What seal and unseal cost against the sum of their parts, on 64 KiB chunks of a file:
//   NACRE_BENCH_FILE=FILE engine_bench
// Rates are of plain bytes. "parts" does liblz4, GCM and CRC by direct calls with nothing around
// them: the floor that seal is measured against.
#include <benchmark/benchmark.h>
#include <lz4.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/engine.h"
#include "gpu_engine/record/seal.h"

namespace nacre::engine {
namespace {

constexpr CipherSuite suite = CipherSuite::aes_256_gcm;
constexpr std::size_t chunk_size = chunk_size_bytes_default;
constexpr std::size_t chunk_count_max = 256;

const Bytes& file() {
  static const Bytes contents = [] {
    const char* path = std::getenv("NACRE_BENCH_FILE");
    std::ifstream stream(path == nullptr ? "" : path, std::ios::binary);
    Bytes read(std::istreambuf_iterator<char>(stream), {});
    read.resize(std::min(read.size() / chunk_size, chunk_count_max) * chunk_size);
    if (read.empty()) {
      std::fputs("set NACRE_BENCH_FILE to a file of at least 64 KiB\n", stderr);
      std::exit(2);
    }
    return read;
  }();
  return contents;
}

ByteView chunk(std::size_t index) {
  return ByteView(file()).subspan(index * chunk_size % file().size(), chunk_size);
}

std::size_t chunk_count() {
  return file().size() / chunk_size;
}

const AeadKey& key() {
  static const auto expanded = AeadKey::create(suite, Bytes(32, 1)).value();
  return *expanded;
}

void report(benchmark::State& state, std::size_t chunks = 1) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(chunks * chunk_size));
}

void parts(benchmark::State& state) {
  Bytes out(LZ4_COMPRESSBOUND(chunk_size));
  Bytes tag(16);
  const Bytes nonce(12);
  const Bytes aad(52);
  std::size_t i = 0;
  for (auto _ : state) {
    const ByteView plain = chunk(i++);
    const int size = LZ4_compress_default(reinterpret_cast<const char*>(plain.data()),
                                          reinterpret_cast<char*>(out.data()), chunk_size,
                                          static_cast<int>(out.size()));
    const MutableByteView stream = MutableByteView(out).first(static_cast<std::size_t>(size));
    key().seal(nonce, aad, stream, stream, tag);
    benchmark::DoNotOptimize(crc32(0, stream));
  }
  report(state);
}
BENCHMARK(parts);

void compression(benchmark::State& state, Codec codec, int level) {
  Bytes out(stream_size_bound(codec, chunk_size));
  std::size_t i = 0;
  std::size_t total = 0;
  for (auto _ : state)
    total += compress(codec, level, chunk(i++), out).value();
  report(state);
  state.counters["ratio"] =
      static_cast<double>(i * chunk_size) / static_cast<double>(std::max<std::size_t>(total, 1));
}
void decompression(benchmark::State& state, Codec codec) {
  std::vector<Bytes> streams;
  for (std::size_t i = 0; i < chunk_count(); ++i) {
    streams.emplace_back(stream_size_bound(codec, chunk_size));
    streams.back().resize(compress(codec, 0, chunk(i), streams.back()).value());
  }
  Bytes plain(chunk_size);
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(decompress(codec, streams[i++ % streams.size()], plain).has_value());
  report(state);
}
BENCHMARK_CAPTURE(compression, lz77, Codec::lz77, 0);
BENCHMARK_CAPTURE(compression, lz77_level_1, Codec::lz77, 1);
BENCHMARK_CAPTURE(compression, lz77_level_7, Codec::lz77, 7);
BENCHMARK_CAPTURE(compression, zstd, Codec::zstd, 0);
BENCHMARK_CAPTURE(compression, zstd_level_1, Codec::zstd, 1);
BENCHMARK_CAPTURE(compression, zstd_level_5, Codec::zstd, 5);
BENCHMARK_CAPTURE(decompression, lz77, Codec::lz77);
BENCHMARK_CAPTURE(decompression, zstd, Codec::zstd);

void gcm(benchmark::State& state, CryptoImplementation implementation) {
  const auto expanded = AeadKey::create(suite, Bytes(32, 1), implementation).value();
  Bytes out(chunk_size);
  Bytes tag(16);
  const Bytes nonce(12);
  for (auto _ : state)
    expanded->seal(nonce, {}, out, out, tag);
  report(state);
}
BENCHMARK_CAPTURE(gcm, ipsec_mb, CryptoImplementation::ipsec_mb);
BENCHMARK_CAPTURE(gcm, openssl, CryptoImplementation::openssl);

void checksum(benchmark::State& state) {
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(crc32(0, chunk(i++)));
  report(state);
}
BENCHMARK(checksum);

void seal(benchmark::State& state, Codec codec) {
  Message message;
  message.codec = codec;
  Bytes out(record_size_bound(suite, Padding::none, chunk_size));
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(seal_record(key(), suite, {}, message, chunk(i++), out).output_size);
  report(state);
}
BENCHMARK_CAPTURE(seal, none, Codec::none);
BENCHMARK_CAPTURE(seal, lz77, Codec::lz77);
BENCHMARK_CAPTURE(seal, zstd, Codec::zstd);

void unseal(benchmark::State& state, Codec codec) {
  Message message;
  message.codec = codec;
  std::vector<Bytes> records;
  for (std::size_t i = 0; i < chunk_count(); ++i) {
    records.emplace_back(record_size_bound(suite, Padding::none, chunk_size));
    records.back().resize(
        seal_record(key(), suite, {}, message, chunk(i), records.back()).output_size);
  }
  Bytes plain(chunk_size);
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        unseal_record(key(), suite, {}, message, records[i++ % records.size()], plain).ok);
  report(state);
}
BENCHMARK_CAPTURE(unseal, none, Codec::none);
BENCHMARK_CAPTURE(unseal, lz77, Codec::lz77);
BENCHMARK_CAPTURE(unseal, zstd, Codec::zstd);

// A payload of 64 chunks on an engine of so many threads.
void engine_seal(benchmark::State& state, Codec codec) {
  constexpr std::size_t message_count = 64;
  const auto engine =
      Engine::create({.thread_count = static_cast<unsigned>(state.range(0))}).value();
  const std::size_t bound = record_size_bound(suite, Padding::none, chunk_size);
  const Arena input = engine->allocate(message_count * chunk_size).value();
  Arena output = engine->allocate(message_count * bound).value();
  Payload payload;
  payload.input = input.data();
  payload.input_size = input.size();
  payload.output = output.data();
  payload.output_size = output.size();
  for (std::size_t i = 0; i < message_count; ++i) {
    const ByteView plain = chunk(i);
    std::copy(plain.begin(), plain.end(), const_cast<Byte*>(input.data()) + i * chunk_size);
    Message& message = payload.messages.emplace_back();
    message.codec = codec;
    message.key_index = payload.add_key(suite, Bytes(32, 1));
    message.input_offset = i * chunk_size;
    message.input_size = chunk_size;
    message.output_offset = i * bound;
    message.output_capacity = bound;
  }
  for (auto _ : state)
    engine->run(payload);
  report(state, message_count);
}
BENCHMARK_CAPTURE(engine_seal, lz77, Codec::lz77)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(engine_seal, zstd, Codec::zstd)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace nacre::engine

BENCHMARK_MAIN();
