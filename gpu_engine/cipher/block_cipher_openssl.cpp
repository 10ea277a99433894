// SPDX-License-Identifier: Apache-2.0
// Block ciphers by OpenSSL: the portable implementation.
//
// OpenSSL 3 keeps single DES in its legacy provider. The provider is loaded into a library context
// of its own, so that other users of OpenSSL in the process notice nothing. Where the provider is
// not installed, 3DES with the same key three times gives the same bytes at a third of the speed.
// OpenSSL has no CTR mode for DES: counters are written out and encrypted as blocks.
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <algorithm>
#include <array>
#include <string>

#include "gpu_engine/cipher/block_cipher_parts.h"
#include "gpu_engine/cipher/openssl_contexts.h"

namespace nacre::engine {
namespace {

constexpr std::size_t counter_piece_size_bytes = 1024;
// OpenSSL counts bytes in an int.
constexpr std::size_t piece_size_bytes_max = std::size_t{1} << 30;

struct Algorithm {
  const EVP_CIPHER* cipher = nullptr;
  bool triple_the_key = false;
};

// Neither is ever freed: threads may outlive static destructors.
OSSL_LIB_CTX* legacy_library() {
  static OSSL_LIB_CTX* const library = [] {
    OSSL_LIB_CTX* made = OSSL_LIB_CTX_new();
    if (made != nullptr) OSSL_PROVIDER_load(made, "legacy");
    return made;
  }();
  return library;
}

Algorithm fetch(BlockCipher cipher, CipherMode mode) {
  const bool own_counters = mode == CipherMode::ctr && block_size_bytes(cipher) == 8;
  const std::string suffix = "-" + std::string(to_string(own_counters ? CipherMode::ecb : mode));
  OSSL_LIB_CTX* const library = cipher == BlockCipher::des ? legacy_library() : nullptr;
  const EVP_CIPHER* found =
      EVP_CIPHER_fetch(library, (std::string(to_string(cipher)) + suffix).c_str(), nullptr);
  if (found != nullptr || cipher != BlockCipher::des) return {found, false};
  return {EVP_CIPHER_fetch(nullptr, ("des-ede3" + suffix).c_str(), nullptr), true};
}

Algorithm find_algorithm(BlockCipher cipher, CipherMode mode) {
  using PerMode = std::array<Algorithm, 4>;
  static const std::array<PerMode, 5> algorithms = [] {
    std::array<PerMode, 5> all;
    for (std::size_t c = 0; c < all.size(); ++c) {
      for (std::size_t m = 0; m < all[c].size(); ++m)
        all[c][m] = fetch(static_cast<BlockCipher>(c), static_cast<CipherMode>(m));
    }
    return all;
  }();
  return algorithms[static_cast<std::size_t>(cipher)][static_cast<std::size_t>(mode)];
}

SecretBytes repeat(ByteView key, int times) {
  SecretBytes repeated(key.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i)
    std::copy(key.begin(), key.end(),
              repeated.mutable_view().begin() + i * static_cast<std::ptrdiff_t>(key.size()));
  return repeated;
}

class OpensslCipherKey final : public CipherKey {
 public:
  OpensslCipherKey(BlockCipher cipher, CipherMode mode, const EVP_CIPHER* algorithm, ByteView key)
      : CipherKey(cipher, mode),
        encrypting_(algorithm, key, true),
        decrypting_(algorithm, key, false) {}

  void crypt(Direction direction, const CipherIv& iv, ByteView in,
             MutableByteView out) const override {
    if (in.empty()) return;
    // A keystream is made by encrypting, in both directions.
    const bool by_blocks = takes_whole_blocks(mode()) && direction == Direction::decrypt;
    const OpensslContexts& contexts = by_blocks ? decrypting_ : encrypting_;
    CipherContext context = contexts.take();
    require_openssl(
        EVP_CipherInit_ex2(context.get(), nullptr, nullptr, iv.data(), by_blocks ? 0 : 1, nullptr));
    if (mode() == CipherMode::ctr && block_size_bytes(cipher()) == 8) {
      crypt_counters(context.get(), iv, in, out);
    } else {
      update(context.get(), in, out);
    }
    contexts.give_back(std::move(context));
  }

 private:
  static void update(EVP_CIPHER_CTX* context, ByteView in, MutableByteView out) {
    for (std::size_t at = 0; at < in.size(); at += piece_size_bytes_max) {
      const std::size_t piece = std::min(in.size() - at, piece_size_bytes_max);
      int size = 0;
      require_openssl(EVP_CipherUpdate(context, &out[at], &size, &in[at], static_cast<int>(piece)));
    }
  }

  void crypt_counters(EVP_CIPHER_CTX* context, const CipherIv& iv, ByteView in,
                      MutableByteView out) const {
    CipherIv counter = iv;
    std::array<Byte, counter_piece_size_bytes> keystream;
    for (std::size_t at = 0; at < in.size(); at += keystream.size()) {
      const std::size_t piece = std::min(in.size() - at, keystream.size());
      const MutableByteView blocks =
          MutableByteView(keystream).first(round_up(piece, block_size_bytes(cipher())));
      write_counter_blocks(MutableByteView(counter).first(block_size_bytes(cipher())), blocks);
      update(context, blocks, blocks);
      xor_bytes(in.subspan(at, piece), keystream, out.subspan(at, piece));
    }
    wipe(keystream);
  }

  const OpensslContexts encrypting_;
  const OpensslContexts decrypting_;
};

}  // namespace

Result<std::shared_ptr<const CipherKey>> create_openssl_cipher_key(BlockCipher cipher,
                                                                   CipherMode mode, ByteView key) {
  const Algorithm algorithm = find_algorithm(cipher, mode);
  if (algorithm.cipher == nullptr)
    return fail(ErrorCode::unsupported, "this machine's OpenSSL lacks " +
                                            std::string(to_string(cipher)) + "-" +
                                            std::string(to_string(mode)));
  const SecretBytes whole = repeat(key, algorithm.triple_the_key ? 3 : 1);
  return std::make_shared<const OpensslCipherKey>(cipher, mode, algorithm.cipher, whole.view());
}

}  // namespace nacre::engine
