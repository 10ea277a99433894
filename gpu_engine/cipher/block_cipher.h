// SPDX-License-Identifier: Apache-2.0
// Block ciphers in their plain modes, without authentication: AES (FIPS 197), DES and 3DES (FIPS
// 46-3; keying option 1, three keys) in ECB, CBC, OFB and CTR (NIST SP 800-38A). No volume is
// sealed with these alone; cipher/aead.h builds the suites on them.
//
// CTR: the whole initialization vector is the first block's counter, a big-endian number that
// wraps. OFB: the feedback is a whole block. There is no padding: ECB and CBC take whole blocks
// only. The parity bits of DES keys are ignored.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/implementation.h"

namespace nacre::engine {

enum class BlockCipher : std::uint8_t { aes_128, aes_192, aes_256, des, des_ede3 };
enum class CipherMode : std::uint8_t { ecb, cbc, ofb, ctr };
enum class Direction : std::uint8_t { encrypt, decrypt };
class IpsecMbCipherKey;

inline constexpr std::size_t block_size_bytes_max = 16;
inline constexpr std::size_t block_cipher_key_size_bytes_max = 32;
// An initialization vector; block ciphers of 64-bit blocks use the first half.
using CipherIv = std::array<Byte, block_size_bytes_max>;

std::string_view to_string(BlockCipher cipher);  // "aes-256", "des-ede3"
std::string_view to_string(CipherMode mode);     // "cbc"
bool is_known(BlockCipher cipher, CipherMode mode);
std::size_t key_size_bytes(BlockCipher cipher);
std::size_t block_size_bytes(BlockCipher cipher);
// ECB and CBC.
bool takes_whole_blocks(CipherMode mode);
// Whether each block needs the result of the block before. One core then runs the whole message.
bool is_serial(CipherMode mode, Direction direction);

// An expanded key, bound to one mode: a key is never used in two modes. Thread-safe: one object
// serves all threads. Its memory is wiped when freed.
class CipherKey {
 public:
  // Copies what it needs of the key. invalid_argument for an unknown cipher or mode or a wrong key
  // size; unsupported when the caller names an implementation that this processor cannot run, or
  // when OpenSSL lacks the cipher.
  static Result<std::shared_ptr<const CipherKey>> create(
      BlockCipher cipher, CipherMode mode, ByteView key,
      CryptoImplementation implementation = CryptoImplementation::automatic);
  virtual ~CipherKey() = default;

  BlockCipher cipher() const { return cipher_; }
  CipherMode mode() const { return mode_; }

  // in and out have one size, and are the same memory or do not overlap. in.size() is a multiple of
  // the block size where the mode takes whole blocks. ECB does not read iv. May throw
  // std::bad_alloc.
  virtual void crypt(Direction direction, const CipherIv& iv, ByteView in,
                     MutableByteView out) const = 0;
  // This key in the form that libipsec-mb's lanes use to run several serial messages at once;
  // nullptr when OpenSSL alone runs the key.
  virtual const IpsecMbCipherKey* lane_key() const { return nullptr; }

 protected:
  CipherKey(BlockCipher cipher, CipherMode mode) : cipher_(cipher), mode_(mode) {}

 private:
  const BlockCipher cipher_;
  const CipherMode mode_;
};

// The vector with which crypt() continues at an offset, a multiple of the block size, in a
// direction in which the mode is not serial. in: the whole message's input; only CBC, which is then
// decrypting, reads it: the vector is the block of ciphertext before offset.
CipherIv iv_at(const CipherKey& key, const CipherIv& iv, ByteView in, std::uint64_t offset);

// A message whose mode is serial in its direction (CBC encryption, OFB in both directions).
struct SerialStream {
  const CipherKey* key;
  ByteView in;
  MutableByteView out;
  CipherIv iv;
};

// How many serial messages of this cipher run at once in about the time of one. 1 where running
// several together gains nothing.
std::size_t serial_lane_count(BlockCipher cipher);

// Runs serial messages in parallel lanes, with the results of each key's crypt(). Ciphers, modes
// and lengths may mix; messages of one cipher and about one length fill the lanes best. Changes
// nothing in streams but the bytes of out. May throw std::bad_alloc.
void crypt_serial_streams(std::span<SerialStream> streams);

}  // namespace nacre::engine
