// SPDX-License-Identifier: Apache-2.0
// RSA: the bare operations, wrapping and unwrapping (OAEP-SHA256), and making keys. A size is that
// of the modulus; the data of other families is not used.
#include <fmt/format.h>

#include "gpu_engine/publickey/rsa.h"
#include "tools/bench/families.h"

namespace nacre::tools {

namespace {

using engine::Operation;

constexpr std::size_t secret_size = 32;

BenchGroup make_group(const std::string& operation, int bits, unsigned thread_count,
                      std::size_t message_count) {
  BenchGroup group{.family = "rsa",
                   .operation = fmt::format("rsa-{} {}", bits, operation),
                   .chunk_size_bytes = static_cast<std::size_t>(bits) / 8,
                   .thread_count = thread_count,
                   .unit = BenchUnit::operations,
                   .task = {}};
  group.task.message.rsa_bits = static_cast<std::uint32_t>(bits);
  group.weights.assign(message_count, 1.0);
  group.output_sizes.assign(message_count, static_cast<std::size_t>(bits) / 8);
  return group;
}

// Runs public, then private on the outputs.
Result<> bench_pair(Bench& bench, int bits, const Bytes& public_key, const Bytes& private_key,
                    engine::RsaPadding padding, unsigned thread_count) {
  const bool wraps = padding == engine::RsaPadding::oaep_sha256;
  const std::size_t message_count = 16 * std::size_t{thread_count} * bench.options.repeat;
  BenchGroup first = make_group(wraps ? "wrap" : "public", bits, thread_count, message_count);
  first.task.message.operation = Operation::rsa_public;
  first.task.message.rsa_padding = padding;
  first.task.key_use.kind = engine::KeyKind::rsa_public;
  first.task.key = public_key;
  first.task.has_key = true;
  std::vector<Bytes> numbers;
  for (std::size_t i = 0; i < message_count; ++i) {
    // The number is below the modulus, whose highest bit is set.
    Bytes number(wraps ? secret_size : static_cast<std::size_t>(bits) / 8, 0x5a);
    number[0] = 0;
    number[1] = static_cast<Byte>(i);
    numbers.push_back(std::move(number));
  }
  const std::vector<ByteView> inputs(numbers.begin(), numbers.end());
  first.undo =
      BenchUndo{.task = first.task, .output_sizes = first.output_sizes, .expected = inputs};
  first.undo->task.message.operation = Operation::rsa_private;
  first.undo->task.key_use.kind = engine::KeyKind::rsa_private;
  first.undo->task.key = private_key;
  NACRE_ASSIGN(const BenchOutcome done, run_group(bench, first, {inputs}));

  BenchGroup second = make_group(wraps ? "unwrap" : "private", bits, thread_count, message_count);
  second.task = first.undo->task;
  second.expected = inputs;
  second.keeps_outputs = false;
  NACRE_TRY(run_group(bench, second, {done.outputs_of(0, message_count)}));
  return {};
}

Result<> bench_generation(Bench& bench, int bits, unsigned thread_count) {
  const std::size_t message_count = thread_count;
  BenchGroup group = make_group("make a key", bits, thread_count, message_count);
  group.task.message.operation = Operation::rsa_generate;
  group.keeps_outputs = false;
  group.output_sizes.assign(message_count, engine::rsa_private_key_size_bound(bits));
  NACRE_TRY(run_group(bench, group, {std::vector<ByteView>(message_count)}));
  return {};
}

}  // namespace

Result<> bench_rsa(Bench& bench) {
  // Each row has one payload of its own.
  if (bench.is_payload || !bench.wants("rsa")) return {};
  for (const int bits : {engine::rsa_message_bits_min, 2048, engine::rsa_bits_default, 4096}) {
    NACRE_ASSIGN(const auto key,
                 engine::RsaPrivateKey::generate(bits, engine::rsa_message_bits_min));
    NACRE_ASSIGN(const SecretBytes private_der, key.to_der());
    const Bytes private_key(private_der.view().begin(), private_der.view().end());
    const Bytes public_key = key.public_key().to_der();
    for (const auto padding : {engine::RsaPadding::none, engine::RsaPadding::oaep_sha256}) {
      for (const unsigned thread_count : bench.options.thread_counts)
        NACRE_TRY(bench_pair(bench, bits, public_key, private_key, padding, thread_count));
    }
  }
  for (const int bits : {engine::rsa_message_bits_min, 2048, engine::rsa_bits_default}) {
    for (const unsigned thread_count : bench.options.thread_counts)
      NACRE_TRY(bench_generation(bench, bits, thread_count));
  }
  return {};
}

}  // namespace nacre::tools
