// SPDX-License-Identifier: Apache-2.0
// Authenticated encryption of one buffer under an expanded key.
#pragma once

#include <functional>
#include <memory>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/implementation.h"
#include "gpu_engine/cipher/suite.h"

namespace nacre::engine {

// An expanded key of a suite: key schedules, GHASH tables or the state of an HMAC. Immutable, so
// one object serves all threads. Wiped when freed.
class AeadKey {
 public:
  // invalid_argument when key.size() != key_size_bytes(suite); unsupported when the implementation
  // is asked for by name and this processor lacks it.
  static Result<std::shared_ptr<const AeadKey>> create(
      CipherSuite suite, ByteView key,
      CryptoImplementation implementation = CryptoImplementation::automatic);
  virtual ~AeadKey() = default;

  // Encrypts in into out (same size; may be the same memory) and writes the tag.
  // nonce: nonce_size_bytes, never used twice under one key. See is_valid_nonce().
  // in: a multiple of plain_unit_bytes(suite).
  virtual void seal(ByteView nonce, ByteView aad, ByteView in, MutableByteView out,
                    MutableByteView tag) const = 0;
  // Checks the tag and decrypts. tampered when the tag does not match; out then holds zeros. Even
  // if this throws, out never holds plain bytes whose tag has not been checked.
  virtual Result<void> open(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                            MutableByteView out) const = 0;

  // open() into two places. The first is head. When head has its plain bytes, rest() is called and
  // names the second, for the other in.size() - head.size() bytes. The bytes in head are not
  // verified yet, so rest() may use them to choose a place and for nothing else. head.size() <=
  // in.size(); neither place overlaps in. When the tag does not match, or anything is thrown, both
  // places hold zeros. Only where opens_in_two(): for suites of GCM.
  using ChooseRest = std::function<MutableByteView()>;
  virtual bool opens_in_two() const { return false; }
  virtual Result<void> open_in_two(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                                   MutableByteView head, const ChooseRest& rest) const;
};

// Suites of 64-bit blocks make an initialization vector of the nonce's last eight bytes. The first
// four must then be zero, which they are in every record.
bool is_valid_nonce(CipherSuite suite, ByteView nonce);

}  // namespace nacre::engine
