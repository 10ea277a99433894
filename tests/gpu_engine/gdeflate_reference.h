// SPDX-License-Identifier: Apache-2.0
// The reference GDeflate codec (NVIDIA/libdeflate, branch gdeflate) as a judge of pages. It is in
// no package: build it (make libdeflate.so), and say where it is with
// NACRE_GDEFLATE_REFERENCE=FILE.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Not thread-safe.
class GdeflateReference {
 public:
  // Loads the library that NACRE_GDEFLATE_REFERENCE names. Fails the test if it is no such library.
  GdeflateReference();
  ~GdeflateReference();
  GdeflateReference(const GdeflateReference&) = delete;
  GdeflateReference& operator=(const GdeflateReference&) = delete;

  explicit operator bool() const { return decoder_ != nullptr; }
  // Whether it decodes the page to these very bytes.
  bool agrees(ByteView page, ByteView plain) const;

 private:
  void* library_ = nullptr;
  void* decoder_ = nullptr;
};

}  // namespace nacre::engine
