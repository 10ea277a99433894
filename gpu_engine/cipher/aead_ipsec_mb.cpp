// SPDX-License-Identifier: Apache-2.0
// AES-GCM (NIST SP 800-38D) by libipsec-mb's direct calls: no job queue, so a key serves any
// number of threads and a call's only state is on its own stack.
//
// The library does nothing at all when a pointer is null, even one of zero bytes, so empty views
// are given an address.
#include <algorithm>
#include <array>
#include <memory>

#include "gpu_engine/cipher/aead_parts.h"
#include "gpu_engine/cipher/ipsec_mb.h"

namespace nacre::engine {
namespace {

constexpr std::size_t gcm_tag_size_bytes = 16;

// The library's functions for one key size.
struct GcmFunctions {
  aes_gcm_pre_t expand;
  aes_gcm_enc_dec_t encrypt;
  aes_gcm_enc_dec_t decrypt;
  // Decryption of a message piece by piece.
  aes_gcm_init_t begin;
  aes_gcm_enc_dec_update_t decrypt_piece;
  aes_gcm_enc_dec_finalize_t end_decrypt;
};

GcmFunctions gcm_functions(CipherSuite suite) {
  const IMB_MGR* const all = ipsec_mb_functions();
  if (suite == CipherSuite::aes_128_gcm)
    return {all->gcm128_pre,  all->gcm128_enc,        all->gcm128_dec,
            all->gcm128_init, all->gcm128_dec_update, all->gcm128_dec_finalize};
  if (suite == CipherSuite::aes_192_gcm)
    return {all->gcm192_pre,  all->gcm192_enc,        all->gcm192_dec,
            all->gcm192_init, all->gcm192_dec_update, all->gcm192_dec_finalize};
  return {all->gcm256_pre,  all->gcm256_enc,        all->gcm256_dec,
          all->gcm256_init, all->gcm256_dec_update, all->gcm256_dec_finalize};
}

const Byte* address_of(ByteView bytes) {
  static constexpr Byte nothing = 0;
  return bytes.empty() ? &nothing : bytes.data();
}

class IpsecMbKey final : public AeadKey {
 public:
  IpsecMbKey(CipherSuite suite, ByteView key)
      : functions_(gcm_functions(suite)), schedule_(sizeof(gcm_key_data)) {
    functions_.expand(key.data(), data());
  }

  void seal(ByteView nonce, ByteView aad, ByteView in, MutableByteView out,
            MutableByteView tag) const override {
    run(functions_.encrypt, nonce, aad, in, out, tag.data(), tag.size());
  }

  Result<void> open(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                    MutableByteView out) const override {
    std::array<Byte, gcm_tag_size_bytes> expected;
    run(functions_.decrypt, nonce, aad, in, out, expected.data(), expected.size());
    const bool matches = equal_constant_time(expected, tag);
    wipe(expected);
    if (matches) return {};
    wipe(out);
    return fail(ErrorCode::tampered, "the authentication tag does not match");
  }

  bool opens_in_two() const override { return true; }
  Result<void> open_in_two(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                           MutableByteView head, const ChooseRest& rest) const override {
    gcm_context_data context;
    functions_.begin(data(), &context, nonce.data(), address_of(aad), aad.size());
    decrypt_piece(context, in.first(head.size()), head);
    const MutableByteView chosen = rest();
    decrypt_piece(context, in.subspan(head.size()), chosen);
    std::array<Byte, gcm_tag_size_bytes> expected;
    functions_.end_decrypt(data(), &context, expected.data(), expected.size());
    wipe({reinterpret_cast<Byte*>(&context), sizeof context});
    const bool matches = equal_constant_time(expected, tag);
    wipe(expected);
    if (matches) return {};
    wipe(head);
    wipe(chosen);
    return fail(ErrorCode::tampered, "the authentication tag does not match");
  }

 private:
  // The pool of SecretBytes aligns its blocks enough for the library's wide loads.
  gcm_key_data* data() { return reinterpret_cast<gcm_key_data*>(schedule_.mutable_view().data()); }
  const gcm_key_data* data() const {
    return reinterpret_cast<const gcm_key_data*>(schedule_.view().data());
  }

  void decrypt_piece(gcm_context_data& context, ByteView in, MutableByteView out) const {
    if (!in.empty()) functions_.decrypt_piece(data(), &context, out.data(), in.data(), in.size());
  }

  void run(aes_gcm_enc_dec_t crypt, ByteView nonce, ByteView aad, ByteView in, MutableByteView out,
           Byte* tag, std::size_t tag_size) const {
    Byte nothing = 0;
    gcm_context_data context;
    crypt(data(), &context, out.empty() ? &nothing : out.data(), address_of(in), in.size(),
          nonce.data(), address_of(aad), aad.size(), tag, tag_size);
    // The context holds the encrypted first counter block, which masks the tag.
    wipe({reinterpret_cast<Byte*>(&context), sizeof context});
  }

  const GcmFunctions functions_;
  SecretBytes schedule_;
};

}  // namespace

Result<std::shared_ptr<const AeadKey>> create_ipsec_mb_gcm_key(CipherSuite suite, ByteView key) {
  return std::make_shared<const IpsecMbKey>(suite, key);
}

}  // namespace nacre::engine
