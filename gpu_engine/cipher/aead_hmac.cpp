// SPDX-License-Identifier: Apache-2.0
// Suites that encrypt in CTR or CBC and then authenticate with HMAC-SHA256 (RFC 2104), each with
// keys of its own: docs/FORMAT.md, "Cipher suites".
//
//   CTR  first counter block = nonce, then four zero bytes
//   CBC  IV = block cipher under the IV key of: nonce, then four zero bytes (128-bit blocks),
//        or the nonce's last eight bytes (64-bit blocks). Without the key the IV cannot be
//        predicted, as CBC needs (SP 800-38A, appendix C).
//   tag  HMAC-SHA256(HMAC key, size of AAD u64, size of ciphertext u64, AAD, IV, ciphertext)
//
// The sizes come first, so that no two messages give the same input. The tag is checked before
// anything is decrypted. There is no padding that could serve as an oracle: CBC takes whole blocks,
// and records are filled up with zeros inside the bytes that the tag covers.
#include <algorithm>
#include <array>

#include "gpu_engine/base/check.h"
#include "gpu_engine/cipher/aead_parts.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::engine {
namespace {

class HmacSuiteKey final : public AeadKey {
 public:
  HmacSuiteKey(CipherSuite suite, std::shared_ptr<const CipherKey> cipher,
               std::shared_ptr<const CipherKey> iv_cipher, ByteView hmac_key)
      : suite_(suite),
        cipher_(std::move(cipher)),
        iv_cipher_(std::move(iv_cipher)),
        hmac_(hmac_key) {}

  void seal(ByteView nonce, ByteView aad, ByteView in, MutableByteView out,
            MutableByteView tag) const override {
    NACRE_CHECK(is_valid_nonce(suite_, nonce) && in.size() % plain_unit_bytes(suite_) == 0,
                "{} bytes are sealed under a nonce of {} bytes", in.size(), nonce.size());
    const CipherIv iv = make_iv(nonce);
    cipher_->crypt(Direction::encrypt, iv, in, out);
    const Sha256Digest computed = make_tag(iv, aad, out);
    std::copy(computed.begin(), computed.end(), tag.begin());
  }

  Result<void> open(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                    MutableByteView out) const override {
    const CipherIv iv = make_iv(nonce);
    // The last two conditions refuse nonces and sizes that seal() does not accept.
    const bool matches = equal_constant_time(make_tag(iv, aad, in), tag) &&
                         is_valid_nonce(suite_, nonce) && in.size() % plain_unit_bytes(suite_) == 0;
    if (!matches) {
      wipe(out);
      return fail(ErrorCode::tampered, "the authentication tag does not match");
    }
    cipher_->crypt(Direction::decrypt, iv, in, out);
    return {};
  }

 private:
  std::size_t block_size() const { return block_size_bytes(cipher_->cipher()); }

  CipherIv make_iv(ByteView nonce) const {
    CipherIv iv = {};
    const ByteView used = nonce.last(std::min(block_size(), nonce.size()));
    std::copy(used.begin(), used.end(), iv.begin());
    if (iv_cipher_ != nullptr) {
      const MutableByteView block = MutableByteView(iv).first(block_size());
      iv_cipher_->crypt(Direction::encrypt, {}, block, block);
    }
    return iv;
  }

  Sha256Digest make_tag(const CipherIv& iv, ByteView aad, ByteView ciphertext) const {
    std::array<Byte, 2 * sizeof(std::uint64_t)> sizes;
    store_le(sizes.data(), std::uint64_t{aad.size()});
    store_le(sizes.data() + sizeof(std::uint64_t), std::uint64_t{ciphertext.size()});
    return hmac_.compute(
        std::array<ByteView, 4>{sizes, aad, ByteView(iv).first(block_size()), ciphertext});
  }

  const CipherSuite suite_;
  const std::shared_ptr<const CipherKey> cipher_;
  const std::shared_ptr<const CipherKey> iv_cipher_;  // nullptr for CTR
  const HmacSha256Key hmac_;
};

}  // namespace

Result<std::shared_ptr<const AeadKey>> create_hmac_suite_key(CipherSuite suite, ByteView key,
                                                             CryptoImplementation implementation) {
  const BlockCipher cipher = block_cipher(suite);
  const std::size_t size = key_size_bytes(cipher);
  const bool chained = construction(suite) == SuiteConstruction::cbc_hmac;
  NACRE_ASSIGN(std::shared_ptr<const CipherKey> encrypting,
               CipherKey::create(cipher, chained ? CipherMode::cbc : CipherMode::ctr,
                                 key.first(size), implementation));
  std::shared_ptr<const CipherKey> iv_cipher;
  if (chained) {
    NACRE_ASSIGN(iv_cipher, CipherKey::create(cipher, CipherMode::ecb, key.subspan(size, size),
                                              implementation));
  }
  return std::make_shared<const HmacSuiteKey>(suite, std::move(encrypting), std::move(iv_cipher),
                                              key.last(suite_hmac_key_size_bytes));
}

}  // namespace nacre::engine
