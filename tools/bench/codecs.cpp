// SPDX-License-Identifier: Apache-2.0
// Codecs: encode, with the ratio, and decode; each contender decodes its own streams.
#include <numeric>

#include <fmt/format.h>

#include "gpu_engine/codec/codec.h"
#include "tools/bench/families.h"

namespace nacre::tools {

namespace {

using engine::Codec;

constexpr engine::CodecChoice codec_choices[] = {
    {Codec::lz77, 0},    {Codec::lz77, 9},      {Codec::zstd, 0},     {Codec::rle, 0},
    {Codec::huffman, 0}, {Codec::gdeflate, 1},  {Codec::gdeflate, 6}, {Codec::gdeflate, 9},
    {Codec::lzw, 0},     {Codec::automatic, 0},
};

std::string choice_name(const engine::CodecChoice& choice) {
  const std::string name(engine::to_string(choice.codec));
  return choice.level == 0 ? name : fmt::format("{}-{}", name, choice.level);
}

Result<> bench_codec(Bench& bench, const engine::CodecChoice& choice, std::size_t chunk_size,
                     unsigned thread_count) {
  const std::vector<ByteView> plain = cut_into_chunks(bench.data, chunk_size);
  BenchGroup encode{.family = "codecs",
                    .operation = choice_name(choice) + " encode",
                    .chunk_size_bytes = chunk_size,
                    .thread_count = thread_count,
                    .task = {}};
  encode.task.message.operation = engine::Operation::compress;
  encode.task.message.codec = choice.codec;
  encode.task.message.level = static_cast<std::int8_t>(choice.level);
  std::vector<std::size_t> plain_sizes;
  for (const ByteView chunk : plain) {
    plain_sizes.push_back(chunk.size());
    encode.weights.push_back(static_cast<double>(chunk.size()));
    encode.output_sizes.push_back(engine::stream_size_bound(choice.codec, chunk.size()));
    encode.library_output_sizes.push_back(engine::baseline_output_size_bound({}, chunk.size()));
  }
  encode.plain_bytes = static_cast<double>(bench.data.bytes.size());
  encode.undo = BenchUndo{.task = encode.task, .output_sizes = plain_sizes, .expected = plain};
  encode.undo->task.message.operation = engine::Operation::decompress;
  NACRE_ASSIGN(const BenchOutcome encoded, run_group(bench, encode, {plain}));
  // A stream of auto does not name its codec; the record around it does.
  if (choice.codec == Codec::automatic) return {};

  BenchGroup decode = encode;
  decode.operation = choice_name(choice) + " decode";
  decode.task = encode.undo->task;
  decode.undo.reset();
  decode.output_sizes = plain_sizes;
  decode.library_output_sizes.clear();
  decode.plain_bytes = 0;
  decode.expected = plain;
  std::vector<std::vector<ByteView>> streams;
  for (std::size_t i = 0; i < encoded.contenders.size(); ++i)
    streams.push_back(encoded.outputs_of(i, plain.size()));
  decode.keeps_outputs = false;
  NACRE_TRY(run_group(bench, decode, streams));
  return {};
}

}  // namespace

Result<> bench_codecs(Bench& bench) {
  for (const engine::CodecChoice& choice : codec_choices) {
    if (!bench.wants(choice_name(choice))) continue;
    for (const std::size_t chunk_size : bench.options.chunk_sizes) {
      for (const unsigned thread_count : bench.options.thread_counts)
        NACRE_TRY(bench_codec(bench, choice, chunk_size, thread_count));
    }
  }
  return {};
}

}  // namespace nacre::tools
