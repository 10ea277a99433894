// SPDX-License-Identifier: Apache-2.0
// SHA-256, HMAC-SHA256 and HKDF-SHA256 by OpenSSL. Algorithms are fetched once and kept.
//
// SHA-256 cannot fail for a reason that a caller could handle. It is a part of every OpenSSL, so
// only exhausted memory is left, and std::bad_alloc is thrown.
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::engine {
namespace {

struct FreeHash {
  void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

void require_hash(bool succeeded) {
  if (!succeeded) throw std::bad_alloc();
}

// HMAC-SHA256 of one key over any number of messages.
class Hmac {
 public:
  explicit Hmac(ByteView key) : context_(EVP_MAC_CTX_new(algorithm())) {
    require_hash(context_ != nullptr);
    char digest[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    // OpenSSL takes a null key for "keep the last one", so an empty key gets an address here.
    static constexpr Byte no_key = 0;
    require_hash(EVP_MAC_init(context_.get(), key.empty() ? &no_key : key.data(), key.size(),
                              parameters) == 1);
  }

  void restart() { require_hash(EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1); }

  void update(ByteView part) {
    if (!part.empty()) require_hash(EVP_MAC_update(context_.get(), part.data(), part.size()) == 1);
  }

  void finish(MutableByteView out) {
    std::size_t size = 0;
    require_hash(EVP_MAC_final(context_.get(), out.data(), &size, out.size()) == 1);
  }

 private:
  static EVP_MAC* algorithm() {
    static const std::unique_ptr<EVP_MAC, FreeHash> instance(
        EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    require_hash(instance != nullptr);
    return instance.get();
  }

  std::unique_ptr<EVP_MAC_CTX, FreeHash> context_;
};

}  // namespace

// A context serves one call at a time. Contexts of earlier calls are lent out again, so there are
// never more of them than there were calls at once.
struct HmacSha256Key::State {
  SecretBytes key;
  Mutex mutex;
  std::vector<std::unique_ptr<Hmac>> idle NACRE_GUARDED_BY(mutex);

  std::unique_ptr<Hmac> take() {
    {
      const LockGuard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<Hmac> hmac = std::move(idle.back());
        idle.pop_back();
        hmac->restart();
        return hmac;
      }
    }
    return std::make_unique<Hmac>(key.view());
  }

  void give_back(std::unique_ptr<Hmac> hmac) {
    const LockGuard lock(mutex);
    idle.push_back(std::move(hmac));
  }
};

HmacSha256Key::HmacSha256Key(ByteView key) : state_(new State{.key = SecretBytes(key)}) {}
HmacSha256Key::~HmacSha256Key() = default;

Sha256Digest HmacSha256Key::compute(std::span<const ByteView> parts) const {
  std::unique_ptr<Hmac> hmac = state_->take();
  for (const ByteView part : parts)
    hmac->update(part);
  Sha256Digest digest;
  hmac->finish(digest);
  state_->give_back(std::move(hmac));
  return digest;
}

Sha256Digest sha256(ByteView message) {
  static const std::unique_ptr<EVP_MD, FreeHash> algorithm(
      EVP_MD_fetch(nullptr, "SHA256", nullptr));
  Sha256Digest digest;
  require_hash(algorithm != nullptr && EVP_Digest(message.data(), message.size(), digest.data(),
                                                  nullptr, algorithm.get(), nullptr) == 1);
  return digest;
}

Sha256Digest hmac_sha256(ByteView key, ByteView message) {
  Sha256Digest digest;
  Hmac hmac(key);
  hmac.update(message);
  hmac.finish(digest);
  return digest;
}

// RFC 5869: PRK = HMAC(salt, key); T(i) = HMAC(PRK, T(i-1) | info | i); output = T(1) | T(2) | …
// An empty salt means 32 zero bytes; HMAC's own padding turns the one into the other.
Result<SecretBytes> hkdf_sha256(ByteView key, ByteView salt, std::string_view info,
                                std::size_t size) {
  constexpr std::size_t size_max = 255 * sha256_size_bytes;
  if (size > size_max)
    return fail(ErrorCode::invalid_argument,
                fmt::format("HKDF gives at most {} bytes, not {}", size_max, size));
  SecretBytes pseudorandom_key(sha256_size_bytes);
  Hmac extract(salt);
  extract.update(key);
  extract.finish(pseudorandom_key.mutable_view());

  SecretBytes output(size);
  SecretBytes block(sha256_size_bytes);
  Hmac expand(pseudorandom_key.view());
  Byte counter = 1;
  for (std::size_t done = 0; done < size; done += sha256_size_bytes, ++counter) {
    if (counter > 1) {
      expand.restart();
      expand.update(block.view());
    }
    expand.update(as_bytes(info));
    expand.update({&counter, 1});
    expand.finish(block.mutable_view());
    const std::size_t part = std::min(sha256_size_bytes, size - done);
    std::copy_n(block.view().begin(), part,
                output.mutable_view().begin() + static_cast<std::ptrdiff_t>(done));
  }
  return output;
}

}  // namespace nacre::engine
