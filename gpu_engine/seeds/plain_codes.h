// SPDX-License-Identifier: Apache-2.0
// The papers' plain serial codes in the form of libraries, so that `nacre-papers` measures them as
// it measures libraries.
#pragma once

#include "gpu_engine/baseline/baseline.h"
#include "gpu_engine/seeds/rsa_plain.h"

namespace nacre::engine::seeds {

// CRC-32 with one table; its output is the value, u32 little-endian.
BaselineLibrary plain_crc();
// ECB; by tables also CTR, and CBC encryption. Uses task's operation, key, mode and iv.
BaselineLibrary plain_aes_bytewise(const BaselineTask& task);
BaselineLibrary plain_aes_by_tables(const BaselineTask& task);
BaselineLibrary plain_des(const BaselineTask& task);
BaselineLibrary plain_rsa(const RsaNumbers& key, bool is_public);
// A new key (search_rsa_numbers()); its output is DER PKCS#8.
BaselineLibrary plain_rsa_keys(int bits);
// task.codec: rle, lz77, huffman or lzw, in the plain codes' own streams (packers.h).
BaselineLibrary plain_packer(const BaselineTask& task);

}  // namespace nacre::engine::seeds
