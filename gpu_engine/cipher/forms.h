// SPDX-License-Identifier: Apache-2.0
// How kernels classify keys and block ciphers. Free of CUDA, because the planner uses it too.
#pragma once

#include <cstdint>

namespace nacre::engine {

// How a suite combines encryption and authentication; block_cipher: the key is of a block cipher
// alone.
enum class KeyForm : std::uint32_t { block_cipher, gcm, ctr_hmac, cbc_hmac };

// Keys of different families lie in different tables, for different kernels.
enum class CipherFamily : std::uint8_t { aes, des, des_ede3 };

enum class CryptMode : std::uint8_t { ecb, cbc, ofb, ctr };
enum class CryptDirection : std::uint8_t { encrypt, decrypt };

}  // namespace nacre::engine
