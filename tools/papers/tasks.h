// SPDX-License-Identifier: Apache-2.0
// The operations that the papers measure, as pairs that the engine, libraries and plain codes do.
#pragma once

#include "gpu_engine/seeds/rsa_plain.h"
#include "tools/papers/run.h"

namespace nacre::tools {

// A key of this many bytes, good for measurements only.
Bytes seed_key(std::size_t size);
// A task under a block cipher.
BenchTask seed_cipher_task(engine::Operation operation, engine::BlockCipher cipher,
                           engine::CipherMode mode);

SeedPair seed_checksum(std::vector<ByteView> messages);
// AES byte by byte (as in 003; only ECB), or by tables, on one and on all threads (001, 002: ECB,
// CTR, CBC). ECB has both directions.
SeedPair seed_aes(std::vector<ByteView> messages, engine::BlockCipher cipher,
                  engine::CipherMode mode, bool bytewise);
SeedPair seed_des(std::vector<ByteView> messages);
SeedPair seed_codec(std::vector<ByteView> messages, engine::Codec codec);
// AES-256-GCM: there is no plain code for it.
SeedPair seed_gcm(std::vector<ByteView> messages);
// Numbers below the modulus. key must outlive the pair.
SeedPair seed_rsa(std::vector<ByteView> numbers, const engine::seeds::RsaNumbers& key);

}  // namespace nacre::tools
