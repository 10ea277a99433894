// SPDX-License-Identifier: Apache-2.0
// Names and sizes of the block ciphers, and the choice between their implementations.
//
// Measured on one core with AVX-512 and VAES, November 2026: in the modes whose blocks do not
// depend on each other, libipsec-mb runs AES two to four times as fast as OpenSSL 3.0, and DES and
// 3DES some six times as fast, in 16 lanes. One serial message fills only one lane, and is faster
// with OpenSSL. automatic chooses the faster of the two for each message.
#include "gpu_engine/cipher/block_cipher.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_engine/cipher/block_cipher_parts.h"

namespace nacre::engine {
namespace {

// A single DES message shorter than this runs faster as one chain in OpenSSL than cut into lanes.
constexpr std::size_t des_lanes_size_bytes_min = 256;

bool is_aes(BlockCipher cipher) {
  return block_size_bytes(cipher) == 16;
}

class AutomaticKey final : public CipherKey {
 public:
  AutomaticKey(std::shared_ptr<const CipherKey> ipsec_mb, std::shared_ptr<const CipherKey> openssl)
      : CipherKey(ipsec_mb->cipher(), ipsec_mb->mode()),
        ipsec_mb_(std::move(ipsec_mb)),
        openssl_(std::move(openssl)) {}

  void crypt(Direction direction, const CipherIv& iv, ByteView in,
             MutableByteView out) const override {
    const bool lanes_win = !is_serial(mode(), direction) &&
                           (is_aes(cipher()) || in.size() >= des_lanes_size_bytes_min);
    (lanes_win ? ipsec_mb_ : openssl_)->crypt(direction, iv, in, out);
  }
  const IpsecMbCipherKey* lane_key() const override { return ipsec_mb_->lane_key(); }

 private:
  const std::shared_ptr<const CipherKey> ipsec_mb_;
  const std::shared_ptr<const CipherKey> openssl_;
};

}  // namespace

std::string_view to_string(BlockCipher cipher) {
  switch (cipher) {
    case BlockCipher::aes_128:
      return "aes-128";
    case BlockCipher::aes_192:
      return "aes-192";
    case BlockCipher::aes_256:
      return "aes-256";
    case BlockCipher::des:
      return "des";
    case BlockCipher::des_ede3:
      return "des-ede3";
  }
  return "unknown";
}

std::string_view to_string(CipherMode mode) {
  switch (mode) {
    case CipherMode::ecb:
      return "ecb";
    case CipherMode::cbc:
      return "cbc";
    case CipherMode::ofb:
      return "ofb";
    case CipherMode::ctr:
      return "ctr";
  }
  return "unknown";
}

bool is_known(BlockCipher cipher, CipherMode mode) {
  return cipher <= BlockCipher::des_ede3 && mode <= CipherMode::ctr;
}

std::size_t key_size_bytes(BlockCipher cipher) {
  switch (cipher) {
    case BlockCipher::aes_128:
      return 16;
    case BlockCipher::aes_192:
    case BlockCipher::des_ede3:
      return 24;
    case BlockCipher::aes_256:
      return 32;
    case BlockCipher::des:
      return 8;
  }
  return 0;
}

std::size_t block_size_bytes(BlockCipher cipher) {
  return cipher == BlockCipher::des || cipher == BlockCipher::des_ede3 ? 8 : 16;
}

bool takes_whole_blocks(CipherMode mode) {
  return mode == CipherMode::ecb || mode == CipherMode::cbc;
}

bool is_serial(CipherMode mode, Direction direction) {
  return mode == CipherMode::ofb || (mode == CipherMode::cbc && direction == Direction::encrypt);
}

CipherIv iv_at(const CipherKey& key, const CipherIv& iv, ByteView in, std::uint64_t offset) {
  CipherIv found = iv;
  const std::size_t block = block_size_bytes(key.cipher());
  if (key.mode() == CipherMode::ctr)
    advance_counter(MutableByteView(found).first(block), offset / block);
  if (key.mode() == CipherMode::cbc && offset > 0)
    std::copy_n(&in[offset - block], block, found.begin());
  return found;
}

Result<std::shared_ptr<const CipherKey>> CipherKey::create(BlockCipher cipher, CipherMode mode,
                                                           ByteView key,
                                                           CryptoImplementation implementation) {
  if (!is_known(cipher, mode))
    return fail(ErrorCode::invalid_argument,
                fmt::format("unknown block cipher {} or mode {}", static_cast<unsigned>(cipher),
                            static_cast<unsigned>(mode)));
  if (key.size() != key_size_bytes(cipher))
    return fail(ErrorCode::invalid_argument,
                fmt::format("a key of {} has {} bytes, not {}", to_string(cipher),
                            key_size_bytes(cipher), key.size()));
  const bool automatic = implementation == CryptoImplementation::automatic;
  if (automatic) implementation = chosen_crypto_implementation();
  if (implementation == CryptoImplementation::openssl)
    return create_openssl_cipher_key(cipher, mode, key);
  NACRE_TRY(require_ipsec_mb());
  if (!automatic) return create_ipsec_mb_cipher_key(cipher, mode, key);
  NACRE_ASSIGN(std::shared_ptr<const CipherKey> openssl,
               create_openssl_cipher_key(cipher, mode, key));
  // Without lanes the library has only plain code for DES.
  if (!is_aes(cipher) && serial_lane_count(cipher) == 1) return openssl;
  return std::make_shared<const AutomaticKey>(create_ipsec_mb_cipher_key(cipher, mode, key),
                                              std::move(openssl));
}

}  // namespace nacre::engine
