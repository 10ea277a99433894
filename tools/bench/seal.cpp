// SPDX-License-Identifier: Apache-2.0
// Whole records with aes-256-gcm: seal, unseal, reseal.
#include <fmt/format.h>

#include "gpu_engine/codec/codec.h"
#include "tools/bench/families.h"

namespace nacre::tools {

namespace {

using engine::Codec;
using engine::Operation;

constexpr auto suite = engine::CipherSuite::aes_256_gcm;
constexpr engine::CodecChoice choices[] = {
    {Codec::none, 0},     {Codec::lz77, 0},      {Codec::zstd, 0},
    {Codec::gdeflate, 1}, {Codec::rle, 0},       {Codec::huffman, 0},
    {Codec::lzw, 0},      {Codec::automatic, 0}, {Codec::automatic, 1},
};

std::string name_of(const engine::CodecChoice& choice) {
  const std::string name(engine::to_string(choice.codec));
  return choice.level == 0 ? name : fmt::format("{}-{}", name, choice.level);
}

Result<> bench_record(Bench& bench, const engine::CodecChoice& choice, std::size_t chunk_size,
                      unsigned thread_count) {
  const std::vector<ByteView> plain = cut_into_chunks(bench.data, chunk_size);
  const std::string name = name_of(choice);
  BenchGroup seal{.family = "seal",
                  .operation = "seal " + name,
                  .chunk_size_bytes = chunk_size,
                  .thread_count = thread_count,
                  .task = {}};
  seal.task.message.operation = Operation::seal;
  seal.task.message.codec = choice.codec;
  seal.task.message.level = static_cast<std::int8_t>(choice.level);
  seal.task.key_use = {.kind = engine::KeyKind::suite, .suite = suite};
  seal.task.key.assign(engine::key_size_bytes(suite), 0x3c);
  seal.task.has_key = true;
  std::vector<std::size_t> plain_sizes;
  for (const ByteView chunk : plain) {
    plain_sizes.push_back(chunk.size());
    seal.weights.push_back(static_cast<double>(chunk.size()));
    seal.output_sizes.push_back(
        engine::record_size_bound(suite, engine::Padding::none, chunk.size()));
    seal.library_output_sizes.push_back(engine::baseline_output_size_bound({}, chunk.size()));
  }
  seal.plain_bytes = static_cast<double>(bench.data.bytes.size());
  seal.undo = BenchUndo{.task = seal.task, .output_sizes = plain_sizes, .expected = plain};
  seal.undo->task.message.operation = Operation::unseal;
  NACRE_ASSIGN(const BenchOutcome sealed, run_group(bench, seal, {plain}));
  std::vector<std::vector<ByteView>> records;
  for (std::size_t i = 0; i < sealed.contenders.size(); ++i)
    records.push_back(sealed.outputs_of(i, plain.size()));

  BenchGroup unseal = seal;
  unseal.operation = "unseal " + name;
  unseal.task = seal.undo->task;
  unseal.undo.reset();
  unseal.output_sizes = plain_sizes;
  unseal.library_output_sizes.clear();
  unseal.plain_bytes = 0;
  unseal.expected = plain;
  unseal.keeps_outputs = false;
  NACRE_TRY(run_group(bench, unseal, records));

  BenchGroup reseal = seal;
  reseal.operation = "reseal " + name;
  reseal.task.message.operation = Operation::reseal;
  reseal.task.new_key.assign(engine::key_size_bytes(suite), 0xc3);
  reseal.undo->task.key = reseal.task.new_key;
  reseal.plain_bytes = 0;
  reseal.keeps_outputs = false;
  NACRE_TRY(run_group(bench, reseal, records));
  return {};
}

}  // namespace

Result<> bench_seal(Bench& bench) {
  for (const engine::CodecChoice& choice : choices) {
    if (!bench.wants(name_of(choice))) continue;
    for (const std::size_t chunk_size : bench.options.chunk_sizes) {
      for (const unsigned thread_count : bench.options.thread_counts)
        NACRE_TRY(bench_record(bench, choice, chunk_size, thread_count));
    }
  }
  return {};
}

}  // namespace nacre::tools
