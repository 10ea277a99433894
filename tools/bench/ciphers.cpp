// SPDX-License-Identifier: Apache-2.0
// Ciphers: every block cipher in every mode, and every suite that a volume may have. Only whole
// blocks of each file are used. OFB and CTR do the same in both directions.
#include <fmt/format.h>

#include "gpu_engine/cipher/suite.h"
#include "tools/bench/families.h"

namespace nacre::tools {

namespace {

using engine::BlockCipher;
using engine::CipherMode;

struct Subject {
  std::string name;
  engine::KeyUse use;
  std::size_t key_size;
  std::size_t tag_size;
};

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (std::uint8_t number = 1; number <= engine::cipher_suite_number_max; ++number) {
    const auto suite = static_cast<engine::CipherSuite>(number);
    const bool is_gcm = engine::construction(suite) == engine::SuiteConstruction::gcm;
    subjects.push_back({std::string(engine::to_string(suite)) + (is_gcm ? "" : "+hmac"),
                        {.kind = engine::KeyKind::suite, .suite = suite},
                        engine::key_size_bytes(suite),
                        engine::tag_size_bytes(suite)});
  }
  for (const BlockCipher cipher : {BlockCipher::aes_128, BlockCipher::aes_192, BlockCipher::aes_256,
                                   BlockCipher::des, BlockCipher::des_ede3}) {
    for (const CipherMode mode :
         {CipherMode::ecb, CipherMode::cbc, CipherMode::ofb, CipherMode::ctr}) {
      subjects.push_back({fmt::format("{}-{}", engine::to_string(cipher), engine::to_string(mode)),
                          {.kind = engine::KeyKind::block_cipher, .cipher = cipher, .mode = mode},
                          engine::key_size_bytes(cipher),
                          0});
    }
  }
  return subjects;
}

Result<> bench_cipher(Bench& bench, const Subject& subject, std::size_t chunk_size,
                      unsigned thread_count) {
  BenchGroup encrypt{.family = "ciphers",
                     .operation = subject.name + " encrypt",
                     .chunk_size_bytes = chunk_size,
                     .thread_count = thread_count,
                     .task = {}};
  encrypt.task.message.operation = engine::Operation::encrypt;
  encrypt.task.key_use = subject.use;
  encrypt.task.has_key = true;
  for (std::size_t i = 0; i < subject.key_size; ++i)
    encrypt.task.key.push_back(static_cast<Byte>(37 * i + 11));
  std::vector<ByteView> plain;
  std::vector<std::size_t> plain_sizes;
  for (const ByteView chunk : cut_into_chunks(bench.data, chunk_size)) {
    const std::size_t size =
        chunk.size() / engine::block_size_bytes_max * engine::block_size_bytes_max;
    if (size == 0) continue;
    plain.push_back(chunk.first(size));
    plain_sizes.push_back(size);
    encrypt.weights.push_back(static_cast<double>(size));
    encrypt.output_sizes.push_back(size + subject.tag_size);
  }
  NACRE_ASSIGN(const BenchOutcome encrypted, run_group(bench, encrypt, {plain}));
  const bool is_symmetric = subject.use.kind == engine::KeyKind::block_cipher &&
                            !engine::takes_whole_blocks(subject.use.mode);
  if (is_symmetric) return {};

  BenchGroup decrypt = encrypt;
  decrypt.operation = subject.name + " decrypt";
  decrypt.task.message.operation = engine::Operation::decrypt;
  decrypt.output_sizes = plain_sizes;
  decrypt.expected = plain;
  decrypt.keeps_outputs = false;
  NACRE_TRY(run_group(bench, decrypt, {encrypted.outputs_of(0, plain.size())}));
  return {};
}

}  // namespace

Result<> bench_ciphers(Bench& bench) {
  if (bench.data.bytes.size() < engine::block_size_bytes_max) {
    return fail(ErrorCode::invalid_argument,
                "there is not one whole block of 16 bytes to encrypt: give a larger file");
  }
  for (const Subject& subject : all_subjects()) {
    if (!bench.wants(subject.name)) continue;
    for (const std::size_t chunk_size : bench.options.chunk_sizes) {
      for (const unsigned thread_count : bench.options.thread_counts)
        NACRE_TRY(bench_cipher(bench, subject, chunk_size, thread_count));
    }
  }
  return {};
}

}  // namespace nacre::tools
