// SPDX-License-Identifier: Apache-2.0
// The implementations that block_cipher.cpp chooses from, and what they share.
#pragma once

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/cipher/block_cipher.h"

namespace nacre::engine {

// The caller has checked the arguments.
Result<std::shared_ptr<const CipherKey>> create_openssl_cipher_key(BlockCipher cipher,
                                                                   CipherMode mode, ByteView key);
std::shared_ptr<const CipherKey> create_ipsec_mb_cipher_key(BlockCipher cipher, CipherMode mode,
                                                            ByteView key);

// Adds count to the counter, a big-endian number as long as a block that wraps to zero.
void advance_counter(MutableByteView counter, std::uint64_t count);
// Fills out, which is whole blocks, with counter, counter + 1 and so on. Leaves in counter the next
// one after these.
void write_counter_blocks(MutableByteView counter, MutableByteView out);

// out = in ^ keystream, in out's size. in may be out.
void xor_bytes(ByteView in, ByteView keystream, MutableByteView out);

}  // namespace nacre::engine
