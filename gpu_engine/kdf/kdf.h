// SPDX-License-Identifier: Apache-2.0
// Keys from keys (HKDF-SHA256, RFC 5869), keys from passphrases (Argon2id, RFC 9106), message
// authentication (HMAC-SHA256, RFC 2104), SHA-256, and random bytes from the operating system.
// Thread-safe. When memory is exhausted, std::bad_alloc is thrown.
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

// HKDF extract-and-expand. info: the purpose, e.g. "nacre write session". size: bytes of the
// result; invalid_argument above 255 * 32.
Result<SecretBytes> hkdf_sha256(ByteView key, ByteView salt, std::string_view info,
                                std::size_t size);
Sha256Digest hmac_sha256(ByteView key, ByteView message);
Sha256Digest sha256(ByteView message);

// HMAC-SHA256 under one key for many messages: the key is hashed once. Thread-safe; the key's state
// is wiped when freed.
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

// salt: at least 8 bytes. size: bytes of the result, 4 to 1,024. invalid_argument outside these
// bounds and those of Argon2Parameters: a hostile keyring must not use up the machine.
// out_of_memory when memory_kib cannot be had.
Result<SecretBytes> argon2id(ByteView passphrase, ByteView salt, const Argon2Parameters& parameters,
                             std::size_t size);
// Parameters with which argon2id() takes about target_ms on this machine; never below 64 MiB and
// one pass. Runs argon2id() once to measure.
Argon2Parameters calibrate_argon2(std::uint32_t target_ms);

// The machine's physical memory in KiB. It is 0 if the system does not report it.
std::uint64_t machine_memory_kib();
// The memory in KiB that this process could still get: MemAvailable and free swap, within the
// limits of the process's control groups. UINT64_MAX if the system reports neither.
std::uint64_t available_memory_kib();

// Fills out from getrandom(2). Ends the process when the kernel gives no random bytes.
void random_bytes(MutableByteView out);

}  // namespace nacre::engine
