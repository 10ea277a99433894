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

// An expanded key of a suite: key schedules, GHASH tables or the state of an HMAC. Thread-safe: one
// object serves all threads. Its memory is wiped when freed. The calls with OpenSSL or an HMAC may
// throw std::bad_alloc.
class AeadKey {
 public:
  // Copies what it needs of the key. invalid_argument when key.size() != key_size_bytes(suite);
  // unsupported when the caller names an implementation that this processor cannot run.
  static Result<std::shared_ptr<const AeadKey>> create(
      CipherSuite suite, ByteView key,
      CryptoImplementation implementation = CryptoImplementation::automatic);
  virtual ~AeadKey() = default;

  // Encrypts in into out (same size; may be the same memory) and writes the tag.
  // nonce: nonce_size_bytes, never used twice under one key; is_valid_nonce() must hold.
  // in: a multiple of plain_unit_bytes(suite). tag: tag_size_bytes(suite).
  virtual void seal(ByteView nonce, ByteView aad, ByteView in, MutableByteView out,
                    MutableByteView tag) const = 0;
  // Checks the tag and decrypts in into out, which may be the same memory. tampered when the tag
  // does not match; out then holds zeros. When the call has ended, also by an exception, out holds
  // no plain bytes whose tag was not checked. While the call runs, it may hold such bytes, so no
  // other thread may read it.
  virtual Result<void> open(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                            MutableByteView out) const = 0;

  // open() into two places: head, and the place that rest() returns for the other in.size() -
  // head.size() bytes. rest() is called once, when head holds its plain bytes. These are not
  // verified yet: rest() may use them only to choose the place. rest() must not throw. head.size()
  // <= in.size(); neither place overlaps in. When the tag does not match, or anything is thrown,
  // both places hold zeros. Only where opens_in_two() is true: for suites of GCM.
  using ChooseRest = std::function<MutableByteView()>;
  virtual bool opens_in_two() const { return false; }
  virtual Result<void> open_in_two(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                                   MutableByteView head, const ChooseRest& rest) const;
};

// Whether the suite can use the nonce, of nonce_size_bytes. Suites of 64-bit blocks make their
// initialization vector from the last eight bytes alone, so the first four must be zero, as they
// are in every record.
bool is_valid_nonce(CipherSuite suite, ByteView nonce);

}  // namespace nacre::engine
