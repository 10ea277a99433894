// SPDX-License-Identifier: Apache-2.0
// Counters of CTR mode (SP 800-38A, appendix B.1: the standard incrementing function over the whole
// block), and the XOR with a keystream.
#include <algorithm>

#include "gpu_engine/cipher/block_cipher_parts.h"

namespace nacre::engine {

void advance_counter(MutableByteView counter, std::uint64_t count) {
  // Byte by byte from the end; count becomes the carry.
  for (std::size_t i = counter.size(); i-- > 0 && count != 0;) {
    const std::uint64_t sum = counter[i] + (count & 0xff);
    counter[i] = static_cast<Byte>(sum);
    count = (count >> 8) + (sum >> 8);
  }
}

void write_counter_blocks(MutableByteView counter, MutableByteView out) {
  for (std::size_t at = 0; at < out.size(); at += counter.size()) {
    std::copy(counter.begin(), counter.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
    advance_counter(counter, 1);
  }
}

void xor_bytes(ByteView in, ByteView keystream, MutableByteView out) {
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= out.size(); i += sizeof(std::uint64_t))
    store_le(&out[i], load_le<std::uint64_t>(&in[i]) ^ load_le<std::uint64_t>(&keystream[i]));
  for (; i < out.size(); ++i)
    out[i] = static_cast<Byte>(in[i] ^ keystream[i]);
}

}  // namespace nacre::engine
