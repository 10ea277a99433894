// SPDX-License-Identifier: Apache-2.0
#include "tools/papers/tasks.h"

#include "gpu_engine/seeds/packers.h"
#include "gpu_engine/seeds/plain_codes.h"

namespace nacre::tools {

using engine::BlockCipher;
using engine::CipherMode;
using engine::Operation;

namespace {
std::size_t same_size(std::size_t size) {
  return size;
}
}  // namespace

Bytes seed_key(std::size_t size) {
  Bytes key;
  for (std::size_t i = 0; i < size; ++i)
    key.push_back(static_cast<Byte>(37 * i + 11));
  return key;
}

BenchTask seed_cipher_task(Operation operation, BlockCipher cipher, CipherMode mode) {
  BenchTask task = {};
  task.message.operation = operation;
  task.key_use = {.kind = engine::KeyKind::block_cipher, .cipher = cipher, .mode = mode};
  task.key = seed_key(engine::key_size_bytes(cipher));
  task.has_key = true;
  return task;
}

SeedPair seed_checksum(std::vector<ByteView> messages) {
  SeedPair pair = {.plain = std::move(messages),
                   .forward = {},
                   .back = std::nullopt,
                   .output_bound = [](std::size_t) { return std::size_t{0}; }};
  pair.forward.message.operation = Operation::checksum;
  pair.forward.message.checksum = engine::Checksum::crc32;
  pair.plain_code = [](const BenchTask&) { return engine::seeds::plain_crc(); };
  pair.plain_on_all_threads = true;
  return pair;
}

SeedPair seed_aes(std::vector<ByteView> messages, BlockCipher cipher, CipherMode mode,
                  bool bytewise) {
  SeedPair pair = {.plain = std::move(messages),
                   .forward = seed_cipher_task(Operation::encrypt, cipher, mode),
                   .back = seed_cipher_task(Operation::decrypt, cipher, mode),
                   .output_bound = same_size};
  pair.plain_code = [bytewise](const BenchTask& task) {
    return bytewise ? engine::seeds::plain_aes_bytewise(to_baseline_task(task))
                    : engine::seeds::plain_aes_by_tables(to_baseline_task(task));
  };
  // The plain codes can undo only ECB.
  if (mode != CipherMode::ecb) pair.back.reset();
  pair.plain_on_all_threads = !bytewise;
  return pair;
}

SeedPair seed_des(std::vector<ByteView> messages) {
  SeedPair pair = {
      .plain = std::move(messages),
      .forward = seed_cipher_task(Operation::encrypt, BlockCipher::des, CipherMode::ecb),
      .back = seed_cipher_task(Operation::decrypt, BlockCipher::des, CipherMode::ecb),
      .output_bound = same_size};
  pair.plain_code = [](const BenchTask& task) {
    return engine::seeds::plain_des(to_baseline_task(task));
  };
  return pair;
}

SeedPair seed_codec(std::vector<ByteView> messages, engine::Codec codec) {
  SeedPair pair = {
      .plain = std::move(messages), .forward = {}, .back = BenchTask{}, .output_bound = {}};
  pair.forward.message.operation = Operation::compress;
  pair.forward.message.codec = codec;
  pair.back->message.operation = Operation::decompress;
  pair.back->message.codec = codec;
  pair.output_bound = [codec](std::size_t size) { return engine::stream_size_bound(codec, size); };
  std::size_t largest = 0;
  for (const ByteView message : pair.plain)
    largest = std::max(largest, message.size());
  pair.library_room = engine::seeds::packed_size_bound(largest);
  pair.plain_code = [](const BenchTask& task) {
    return engine::seeds::plain_packer(to_baseline_task(task));
  };
  pair.same_bytes = false;
  return pair;
}

SeedPair seed_gcm(std::vector<ByteView> messages) {
  constexpr auto suite = engine::CipherSuite::aes_256_gcm;
  SeedPair pair = {
      .plain = std::move(messages),
      .forward = {},
      .back = std::nullopt,
      .output_bound = [](std::size_t size) { return size + engine::tag_size_bytes(suite); }};
  pair.forward.message.operation = Operation::encrypt;
  pair.forward.key_use = {.kind = engine::KeyKind::suite, .suite = suite};
  pair.forward.key = seed_key(engine::key_size_bytes(suite));
  pair.forward.has_key = true;
  return pair;
}

SeedPair seed_rsa(std::vector<ByteView> numbers, const engine::seeds::RsaNumbers& key) {
  const std::size_t size = key.modulus.size();
  SeedPair pair = {.plain = std::move(numbers),
                   .forward = {},
                   .back = BenchTask{},
                   .output_bound = [size](std::size_t) { return size; }};
  pair.forward.message.operation = Operation::rsa_public;
  pair.forward.key_use.kind = engine::KeyKind::rsa_public;
  pair.forward.key = key.public_der;
  pair.back->message.operation = Operation::rsa_private;
  pair.back->key_use.kind = engine::KeyKind::rsa_private;
  pair.back->key = key.private_der;
  for (BenchTask* task : {&pair.forward, &*pair.back}) {
    task->message.rsa_bits = static_cast<std::uint32_t>(8 * size);
    task->has_key = true;
  }
  pair.plain_code = [&key](const BenchTask& task) {
    return engine::seeds::plain_rsa(key, task.message.operation == Operation::rsa_public);
  };
  return pair;
}

}  // namespace nacre::tools
