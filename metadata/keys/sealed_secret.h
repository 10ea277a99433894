// SPDX-License-Identifier: Apache-2.0
// A secret that is sealed under a key: nonce [12], random | AES-256-GCM ciphertext | tag [16]. A
// key may seal only few secrets: random nonces would begin to collide after some 2^48 of them.
// Thread-safe.
#pragma once

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::metadata {

inline constexpr std::size_t sealed_secret_overhead_bytes = 12 + 16;

// key: 32 bytes.
Result<Bytes> seal_secret(ByteView key, ByteView aad, ByteView secret);
// Error: tampered if it was not sealed with this key and these additional data, or is too short.
Result<SecretBytes> open_secret(ByteView key, ByteView aad, ByteView sealed);

}  // namespace nacre::metadata
