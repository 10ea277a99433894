// SPDX-License-Identifier: Apache-2.0
// Keys from keys (HKDF-SHA256, RFC 5869), keys from passphrases (Argon2id, RFC 9106), message
// authentication (HMAC-SHA256, RFC 2104), SHA-256, and random bytes from the operating system.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::engine {

inline constexpr std::size_t sha256_size_bytes = 32;
using Sha256Digest = std::array<Byte, sha256_size_bytes>;

// HKDF extract-and-expand; info is the purpose, e.g. "nacre write session". size <= 255 * 32.
Result<SecretBytes> hkdf_sha256(ByteView key, ByteView salt, std::string_view info,
                                std::size_t size);
Sha256Digest hmac_sha256(ByteView key, ByteView message);
Sha256Digest sha256(ByteView message);

// HMAC-SHA256 under one key for many messages: the key is hashed once. Immutable, thread-safe,
// wiped when freed. Throws std::bad_alloc.
class HmacSha256Key {
 public:
  explicit HmacSha256Key(ByteView key);
  ~HmacSha256Key();
  HmacSha256Key(const HmacSha256Key&) = delete;
  HmacSha256Key& operator=(const HmacSha256Key&) = delete;

  // The HMAC of the parts, one after the other.
  Sha256Digest compute(std::span<const ByteView> parts) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

struct Argon2Parameters {
  std::uint32_t memory_kib;  // argon2_memory_kib_min … argon2_memory_kib_max
  std::uint32_t passes;      // 1 … argon2_passes_max
  std::uint32_t lanes;       // 1 … 16
};
inline constexpr std::uint32_t argon2_memory_kib_min = 8u << 10;
inline constexpr std::uint32_t argon2_memory_kib_max = 4u << 20;
inline constexpr std::uint32_t argon2_passes_max = 64;

// invalid_argument outside the bounds above (a hostile keyring must not eat the machine).
Result<SecretBytes> argon2id(ByteView passphrase, ByteView salt, const Argon2Parameters& parameters,
                             std::size_t size);
// Parameters that take about target_ms on this machine; never below 64 MiB and 1 pass.
Argon2Parameters calibrate_argon2(std::uint32_t target_ms);

// Physical memory; 0 when the system does not say.
std::uint64_t machine_memory_kib();
// How much memory this process could still get: what the system can give without evicting others,
// swap included, within the limits of the process's control groups. UINT64_MAX when the system does
// not say.
std::uint64_t available_memory_kib();

// Fills bytes from getrandom(2).
void random_bytes(MutableByteView out);

}  // namespace nacre::engine
