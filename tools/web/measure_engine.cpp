// SPDX-License-Identifier: Apache-2.0
#include "tools/web/measure_engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/publickey/rsa.h"

namespace nacre::tools::web {

namespace {

using engine::Operation;

// The size of a chunk in a volume.
constexpr std::uint64_t piece_size_bytes = 64u << 10;

struct Pieces {
  std::vector<std::uint64_t> offsets, sizes;
  std::uint64_t room = 0;  // the arena that holds them
};

Pieces pieces_of(std::uint64_t size_bytes) {
  Pieces pieces;
  for (std::uint64_t at = 0; at < size_bytes; at += piece_size_bytes) {
    pieces.offsets.push_back(at);
    pieces.sizes.push_back(std::min(piece_size_bytes, size_bytes - at));
  }
  pieces.room = size_bytes;
  return pieces;
}

// Places for outputs of at most these sizes, each on a boundary of 64 bytes.
Pieces room_for(const Pieces& inputs, const std::function<std::uint64_t(std::uint64_t)>& bound) {
  constexpr std::uint64_t alignment = 64;
  Pieces outputs;
  for (const std::uint64_t size : inputs.sizes) {
    outputs.offsets.push_back(outputs.room);
    outputs.sizes.push_back(bound(size));
    outputs.room += round_up(outputs.sizes.back(), alignment);
  }
  return outputs;
}

struct Run {
  double seconds = 0;
  std::uint64_t output_bytes = 0;
  std::vector<std::uint64_t> output_sizes;
};

// Short runs are repeated, and the fastest counts: the first one also pays for memory that was
// never touched.
Result<Run> run_payload(engine::Engine& engine, engine::Payload& payload, int run_count_max = 3) {
  constexpr double repeated_seconds = 0.3;
  Run run;
  double all_seconds = 0;
  for (int i = 0; i < run_count_max && all_seconds < repeated_seconds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    engine.run(payload);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    run.seconds = i == 0 ? seconds : std::min(run.seconds, seconds);
    all_seconds += seconds;
  }
  for (const auto& result : payload.results) {
    if (!result.ok) return fail(result.error, result.detail);
    run.output_bytes += result.output_size;
    run.output_sizes.push_back(result.output_size);
  }
  return run;
}

// message has what all pieces share.
void fill(engine::Payload& payload, const engine::Message& message, const Byte* input,
          std::uint64_t input_size, const Pieces& inputs, engine::Arena& output,
          const Pieces& outputs) {
  payload.input = input;
  payload.input_size = input_size;
  payload.output = output.data();
  payload.output_size = output.size();
  for (std::size_t i = 0; i < inputs.sizes.size(); ++i) {
    engine::Message one = message;
    one.input_offset = inputs.offsets[i];
    one.input_size = inputs.sizes[i];
    one.output_offset = outputs.offsets[i];
    one.output_capacity = outputs.sizes[i];
    // No nonce occurs twice. Suites of 64-bit blocks want zeros in its first four bytes.
    std::memcpy(one.iv.data() + 4, &i, sizeof i);
    payload.add(one);
  }
}

// Runs both ways and compares. prepare adds keys to a payload and returns the message.
Result<MeasuredPair> measure_pair(engine::Engine& engine, const MeasuredBytes& bytes,
                                  std::string method, Operation there, Operation back,
                                  const std::function<std::uint64_t(std::uint64_t)>& bound,
                                  const std::function<engine::Message(engine::Payload&)>& prepare) {
  const Pieces plain = pieces_of(bytes.size_bytes);
  const Pieces packed = room_for(plain, bound);
  NACRE_ASSIGN(auto output, engine.allocate(packed.room));
  NACRE_ASSIGN(auto again, engine.allocate(plain.room));
  engine::Payload first;
  engine::Message message = prepare(first);
  message.operation = there;
  fill(first, message, bytes.arena.data(), bytes.size_bytes, plain, output, packed);
  NACRE_ASSIGN(const Run packed_run, run_payload(engine, first));
  engine::Payload second;
  message = prepare(second);
  message.operation = back;
  Pieces stored = packed;
  stored.sizes = packed_run.output_sizes;
  fill(second, message, output.data(), output.size(), stored, again, plain);
  NACRE_ASSIGN(const Run plain_run, run_payload(engine, second));
  if (std::memcmp(again.data(), bytes.arena.data(), bytes.size_bytes) != 0) {
    return fail(ErrorCode::tampered, "the bytes did not come back as they were");
  }
  return MeasuredPair{.there = {.operation = {},
                                .method = method,
                                .seconds = packed_run.seconds,
                                .amount = bytes.size_bytes,
                                .output_bytes = packed_run.output_bytes},
                      .back = {.operation = {},
                               .method = method,
                               .seconds = plain_run.seconds,
                               .amount = bytes.size_bytes,
                               .output_bytes = packed_run.output_bytes}};
}

}  // namespace

Result<MeasuredPair> measure_codec(engine::Engine& engine, const MeasuredBytes& bytes,
                                   engine::Codec codec) {
  if (codec == engine::Codec::automatic || codec == engine::Codec::none) {
    return fail(ErrorCode::unsupported, "this codec cannot be measured by itself");
  }
  NACRE_ASSIGN(auto pair,
               measure_pair(
                   engine, bytes, std::string(engine::to_string(codec)), Operation::compress,
                   Operation::decompress,
                   [codec](std::uint64_t size) { return engine::stream_size_bound(codec, size); },
                   [codec](engine::Payload&) { return engine::Message{.codec = codec}; }));
  pair.there.operation = "compress";
  pair.back.operation = "decompress";
  return pair;
}

Result<MeasuredPair> measure_suite(engine::Engine& engine, const MeasuredBytes& bytes,
                                   engine::CipherSuite suite) {
  SecretBytes key(engine::key_size_bytes(suite));
  engine::random_bytes(key.mutable_view());
  NACRE_ASSIGN(auto pair,
               measure_pair(
                   engine, bytes, std::string(engine::to_string(suite)), Operation::encrypt,
                   Operation::decrypt,
                   [suite](std::uint64_t size) { return size + engine::tag_size_bytes(suite); },
                   [&](engine::Payload& payload) {
                     return engine::Message{.key_index = payload.add_key(suite, key.view())};
                   }));
  pair.there.operation = "encrypt";
  pair.back.operation = "decrypt";
  return pair;
}

Result<MeasuredRow> measure_rsa_generation(engine::Engine& engine, int bits, std::size_t count) {
  const std::size_t room = engine::rsa_private_key_size_bound(bits);
  NACRE_ASSIGN(auto keys, engine.allocate(room * count));
  engine::Payload payload;
  payload.output = keys.data();
  payload.output_size = keys.size();
  for (std::size_t i = 0; i < count; ++i) {
    payload.add({.operation = Operation::rsa_generate,
                 .output_offset = i * room,
                 .output_capacity = room,
                 .rsa_bits = static_cast<std::uint32_t>(bits)});
  }
  const auto run = run_payload(engine, payload, 1);
  wipe({keys.data(), keys.size()});
  if (!run) return tl::unexpected(run.error());
  return MeasuredRow{.operation = "rsa_generate",
                     .method = fmt::format("rsa-{}", bits),
                     .seconds = run->seconds,
                     .amount = count,
                     .output_bytes = run->output_bytes};
}

Result<MeasuredPair> measure_rsa(engine::Engine& engine, int bits, std::size_t count) {
  NACRE_ASSIGN(const auto key, engine::RsaPrivateKey::generate(bits, engine::rsa_message_bits_min));
  NACRE_ASSIGN(const SecretBytes private_der, key.to_der());
  const Bytes public_der = key.public_key().to_der();
  const std::uint64_t number_size = static_cast<std::uint64_t>(bits) / 8;
  NACRE_ASSIGN(auto plain, engine.allocate(number_size * count));
  NACRE_ASSIGN(auto sealed, engine.allocate(number_size * count));
  NACRE_ASSIGN(auto again, engine.allocate(number_size * count));
  engine::random_bytes({plain.data(), plain.size()});
  Pieces pieces;
  for (std::size_t i = 0; i < count; ++i) {
    plain.data()[i * number_size] = 0;  // below the modulus
    pieces.offsets.push_back(i * number_size);
    pieces.sizes.push_back(number_size);
  }
  engine::Payload first;
  const auto public_index = first.add_rsa_public_key(public_der);
  fill(first, {.operation = Operation::rsa_public, .key_index = public_index}, plain.data(),
       plain.size(), pieces, sealed, pieces);
  NACRE_ASSIGN(const Run there, run_payload(engine, first));
  engine::Payload second;
  const auto private_index = second.add_rsa_private_key(private_der.view());
  fill(second, {.operation = Operation::rsa_private, .key_index = private_index}, sealed.data(),
       sealed.size(), pieces, again, pieces);
  NACRE_ASSIGN(const Run back, run_payload(engine, second));
  if (std::memcmp(again.data(), plain.data(), number_size * count) != 0) {
    return fail(ErrorCode::tampered, "the numbers did not come back as they were");
  }
  const std::string method = fmt::format("rsa-{}", bits);
  return MeasuredPair{.there = {"rsa_encrypt", method, there.seconds, count, there.output_bytes},
                      .back = {"rsa_decrypt", method, back.seconds, count, back.output_bytes}};
}

}  // namespace nacre::tools::web
