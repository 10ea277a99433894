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
  // Checks the tag and decrypts; tampered when it does not match, and then out holds zeros.
  // Whatever it throws, out does not hold plain bytes whose tag has not been checked.
  virtual Result<void> open(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                            MutableByteView out) const = 0;

  // open() into two places: head, and what rest() says when head has its plain bytes. These are not
  // verified yet, so all that may follow from them is where to write in.size() - head.size() bytes.
  // head.size() <= in.size(); neither place overlaps in. Where the tag does not match, or anything
  // is thrown, both hold zeros. Only where opens_in_two(): for suites of GCM.
  using ChooseRest = std::function<MutableByteView()>;
  virtual bool opens_in_two() const { return false; }
  virtual Result<void> open_in_two(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                                   MutableByteView head, const ChooseRest& rest) const;
};

// Suites of 64-bit blocks make an initialization vector of the nonce's last eight bytes only; the
// first four must be zero, which they are in every record.
bool is_valid_nonce(CipherSuite suite, ByteView nonce);

}  // namespace nacre::engine
