// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes OAEP (RFC 8017, 7.1.1 and 7.1.2) for tokens and devices that know only the
// bare RSA operation. SHA-256 serves for both hash and mask.
//
// An attacker who can make the holder open many forged texts, and can tell in which way each of
// them fails, could learn the secret from that (Manger, CRYPTO 2001). So all failures are one
// error, and no branch before the last depends on the decoded bytes.
#include <algorithm>

#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine {
namespace {

// MGF1: XORs the mask that seed gives onto out.
void mask(ByteView seed, MutableByteView out) {
  SecretBytes input(seed.size() + 4);
  std::copy(seed.begin(), seed.end(), input.mutable_view().begin());
  for (std::size_t at = 0, counter = 0; at < out.size(); ++counter) {
    for (std::size_t i = 0; i < 4; ++i)
      input.mutable_view()[seed.size() + i] = static_cast<Byte>(counter >> (24 - 8 * i));
    Sha256Digest digest = sha256(input.view());
    for (std::size_t i = 0; i < digest.size() && at < out.size(); ++i, ++at)
      out[at] ^= digest[i];
    wipe(digest);
  }
}

// 0xff when the byte is 0, else 0x00.
unsigned is_zero(unsigned byte) {
  return ((byte - 1) >> 8) & 0xff;
}

}  // namespace

// 0x00 | masked seed [32] | masked: hash of the label [32] | zeros | 0x01 | the secret
Result<SecretBytes> decode_oaep(ByteView encoded, std::string_view label) {
  constexpr std::size_t hash_size = sha256_size_bytes;
  const auto refuse = [] { return fail(ErrorCode::wrong_key, "this RSA key does not open it"); };
  if (encoded.size() < 2 * hash_size + 2) return refuse();
  SecretBytes copy(encoded);
  const MutableByteView all = copy.mutable_view();
  const MutableByteView seed = all.subspan(1, hash_size);
  const MutableByteView block = all.subspan(1 + hash_size);
  mask(block, seed);
  mask(seed, block);

  const Sha256Digest label_hash = sha256(as_bytes(label));
  unsigned bad = encoded[0];
  for (std::size_t i = 0; i < hash_size; ++i)
    bad |= static_cast<unsigned>(block[i] ^ label_hash[i]);
  unsigned found = 0;  // 0xff from the 0x01 on
  std::size_t secret_at = 0;
  for (std::size_t i = hash_size; i < block.size(); ++i) {
    const unsigned is_one = is_zero(block[i] ^ 1u);
    const unsigned here = ~found & is_one & 0xff;
    secret_at |= (std::size_t{0} - (here & 1)) & (i + 1);
    bad |= ~found & ~is_one & ~is_zero(block[i]) & 0xff;
    found |= here;
  }
  bad |= ~found & 0xff;
  if (bad != 0) return refuse();
  return SecretBytes(ByteView(block).subspan(secret_at));
}

Result<> encode_oaep(ByteView secret, std::string_view label, MutableByteView encoded) {
  constexpr std::size_t hash_size = sha256_size_bytes;
  if (encoded.size() < 2 * hash_size + 2 || secret.size() > encoded.size() - 2 * hash_size - 2)
    return fail(ErrorCode::invalid_argument, "the secret is too long for this RSA key");
  const MutableByteView seed = encoded.subspan(1, hash_size);
  const MutableByteView block = encoded.subspan(1 + hash_size);
  const Sha256Digest label_hash = sha256(as_bytes(label));
  encoded[0] = 0;
  random_bytes(seed);
  std::copy(label_hash.begin(), label_hash.end(), block.begin());
  const std::size_t secret_at = block.size() - secret.size();
  std::fill(block.begin() + hash_size, block.begin() + static_cast<std::ptrdiff_t>(secret_at),
            Byte{0});
  block[secret_at - 1] = 1;
  std::copy(secret.begin(), secret.end(), block.begin() + static_cast<std::ptrdiff_t>(secret_at));
  mask(seed, block);
  mask(block, seed);
  return {};
}

}  // namespace nacre::engine
