// SPDX-License-Identifier: Apache-2.0
// How long the engine takes for the bytes of one file: compression, encryption and their reverse,
// and RSA. Each result is checked: what was decompressed or decrypted must be the file again.
#pragma once

#include <cstdint>
#include <string>

#include "gpu_engine/engine.h"

namespace nacre::tools::web {

// One measurement. rate is bytes of the file in a second, or operations for RSA.
struct MeasuredRow {
  std::string operation;  // compress, decompress, encrypt, decrypt, rsa_generate, …
  std::string method;     // a codec, a suite, "rsa-2048"
  double seconds = 0;
  std::uint64_t amount = 0;  // bytes or operations
  std::uint64_t output_bytes = 0;
};

struct MeasuredPair {
  MeasuredRow there, back;
};

// The bytes to measure with, in memory that the engine made. Immutable and thread-safe.
struct MeasuredBytes {
  engine::Arena arena;
  std::uint64_t size_bytes = 0;  // a multiple of the block size of every cipher
};

// Errors: those of the engine for such messages; tampered if the bytes do not come back.
Result<MeasuredPair> measure_codec(engine::Engine& engine, const MeasuredBytes& bytes,
                                   engine::Codec codec);
Result<MeasuredPair> measure_suite(engine::Engine& engine, const MeasuredBytes& bytes,
                                   engine::CipherSuite suite);
// Encrypts and decrypts count random numbers below the modulus with a new key.
Result<MeasuredPair> measure_rsa(engine::Engine& engine, int bits, std::size_t count);
Result<MeasuredRow> measure_rsa_generation(engine::Engine& engine, int bits, std::size_t count);

}  // namespace nacre::tools::web
