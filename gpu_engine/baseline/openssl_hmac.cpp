// SPDX-License-Identifier: Apache-2.0
// Suites of CTR or CBC with HMAC-SHA256 (docs/FORMAT.md, "Cipher suites"), by OpenSSL alone: the
// block cipher in one pass and the HMAC in another.
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gpu_engine/baseline/baseline_parts.h"

namespace nacre::engine {
namespace {

constexpr std::size_t hmac_tag_size_bytes = 32;

class OpensslHmacSuite final : public Baseline {
 public:
  // cipher: encrypts the text; its vector is set here. iv_cipher: makes the vector out of the
  // nonce; nullptr where the nonce is the vector.
  OpensslHmacSuite(const BaselineTask& task, BaselineTask cipher, const BaselineTask* iv_cipher)
      : encrypts_(task.operation == Operation::encrypt),
        block_size_(block_size_bytes(cipher.key_use.cipher)),
        hmac_key_(task.key.last(suite_hmac_key_size_bytes)) {
    const ByteView nonce = ByteView(task.iv).first(nonce_size_bytes);
    const ByteView used = nonce.last(std::min(block_size_, nonce.size()));
    std::copy(used.begin(), used.end(), iv_.begin());
    if (iv_cipher != nullptr) {
      const CipherIv counter = iv_;
      BaselinePiece block{.input = ByteView(counter).first(block_size_),
                          .output = MutableByteView(iv_).first(block_size_)};
      const auto maker = make(*iv_cipher);
      is_ready_ = maker != nullptr && maker->run({&block, 1});
    }
    cipher.iv = iv_;
    cipher_ = make(cipher);
    is_ready_ = is_ready_ && cipher_ != nullptr;
  }

  bool run(std::span<BaselinePiece> pieces) override {
    if (!is_ready_) return false;
    for (BaselinePiece& piece : pieces) {
      const std::size_t size =
          encrypts_ ? piece.input.size() : piece.input.size() - hmac_tag_size_bytes;
      BaselinePiece text{.input = piece.input.first(size), .output = piece.output.first(size)};
      std::array<Byte, hmac_tag_size_bytes> tag;
      if (!encrypts_) {
        make_tag(text.input, tag.data());
        if (CRYPTO_memcmp(tag.data(), piece.input.data() + size, tag.size()) != 0) return false;
      }
      if (!cipher_->run({&text, 1})) return false;
      if (encrypts_) make_tag(text.output, piece.output.data() + size);
      piece.output_size = encrypts_ ? size + hmac_tag_size_bytes : size;
    }
    return true;
  }

 private:
  static std::unique_ptr<Baseline> make(const BaselineTask& task) {
    BaselineLibraries libraries;
    add_openssl_baselines(task, libraries);
    return libraries.empty() ? nullptr : libraries[0].make();
  }

  void make_tag(ByteView ciphertext, Byte* tag) {
    std::array<Byte, 2 * sizeof(std::uint64_t)> sizes = {};
    store_le(sizes.data() + sizeof(std::uint64_t), std::uint64_t{ciphertext.size()});
    const std::array<ByteView, 3> parts = {sizes, ByteView(iv_).first(block_size_), ciphertext};
    EVP_MAC_init(context_.get(), hmac_key_.data(), hmac_key_.size(), digest_.data());
    for (const ByteView part : parts)
      EVP_MAC_update(context_.get(), part.data(), part.size());
    std::size_t size = 0;
    EVP_MAC_final(context_.get(), tag, &size, hmac_tag_size_bytes);
  }

  const bool encrypts_;
  const std::size_t block_size_;
  const ByteView hmac_key_;
  CipherIv iv_ = {};
  bool is_ready_ = true;
  std::unique_ptr<Baseline> cipher_;
  std::shared_ptr<EVP_MAC> mac_{EVP_MAC_fetch(nullptr, "HMAC", nullptr), EVP_MAC_free};
  std::shared_ptr<EVP_MAC_CTX> context_{EVP_MAC_CTX_new(mac_.get()), EVP_MAC_CTX_free};
  std::string digest_name_ = "SHA256";
  const std::array<OSSL_PARAM, 2> digest_ = {
      OSSL_PARAM_construct_utf8_string("digest", digest_name_.data(), 0),
      OSSL_PARAM_construct_end()};
};

}  // namespace

void add_openssl_hmac_baseline(const BaselineTask& task, BaselineLibraries& libraries) {
  const CipherSuite suite = task.key_use.suite;
  const BlockCipher cipher = block_cipher(suite);
  const std::size_t key_size = key_size_bytes(cipher);
  const bool chained = construction(suite) == SuiteConstruction::cbc_hmac;

  BaselineTask inner = task;
  inner.key_use = {.kind = KeyKind::block_cipher,
                   .cipher = cipher,
                   .mode = chained ? CipherMode::cbc : CipherMode::ctr};
  inner.key = task.key.first(key_size);
  BaselineTask iv_task = inner;
  iv_task.operation = Operation::encrypt;
  iv_task.key_use.mode = CipherMode::ecb;
  if (chained) iv_task.key = task.key.subspan(key_size, key_size);

  const std::string name = fmt::format("OpenSSL {}", OpenSSL_version(OPENSSL_VERSION_STRING));
  libraries.push_back({name, "", true, "libssl-dev", [task, inner, iv_task, chained] {
                         return std::make_unique<OpensslHmacSuite>(task, inner,
                                                                   chained ? &iv_task : nullptr);
                       }});
}

}  // namespace nacre::engine
