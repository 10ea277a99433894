// SPDX-License-Identifier: Apache-2.0
// The claims of a document before its MAC is checked. An attacker could have written them.
#pragma once

#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::metadata {

// The proof that comes with a document.
struct Seal {
  std::string text;  // what the MAC covers
  engine::Sha256Digest mac = {};
};

// Error: tampered if the MAC is not that of mac_key. what names the document in the message.
Result<void> verify(const Seal& seal, ByteView mac_key, std::string_view what);

template <typename T>
struct Unverified {
  T claims;
  Seal seal;
};

}  // namespace nacre::metadata
