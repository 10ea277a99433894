// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) over names. A user
// without the volume's key can neither foresee the order of a directory nor make names collide.
#include <bit>

#include "metadata/format/rows.h"
#include "metadata/format/siphash.h"

namespace nacre::metadata {

namespace {

constexpr std::uint64_t cookie_count_reserved = 3;

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t siphash_2_4(const std::array<Byte, 16>& key, ByteView message) {
  const auto k0 = load_le<std::uint64_t>(key.data());
  const auto k1 = load_le<std::uint64_t>(key.data() + 8);
  SipState state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                 k1 ^ 0x7465646279746573};
  std::uint64_t last = static_cast<std::uint64_t>(message.size()) << 56;
  while (message.size() >= 8) {
    state.absorb(load_le<std::uint64_t>(message.data()));
    message = message.subspan(8);
  }
  for (std::size_t i = 0; i < message.size(); ++i)
    last |= std::uint64_t{message[i]} << (8 * i);
  state.absorb(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i)
    state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

std::uint64_t name_hash(const std::array<Byte, 16>& key, std::string_view name) {
  const std::uint64_t hash = siphash_2_4(key, as_bytes(name)) & (~0ull >> 1);
  return hash < cookie_count_reserved ? hash + cookie_count_reserved : hash;
}

}  // namespace nacre::metadata
