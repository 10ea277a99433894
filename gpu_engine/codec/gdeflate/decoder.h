// SPDX-License-Identifier: Apache-2.0
// Decodes GDeflate pages (format.h). Thread-safe: tables are per thread. May throw std::bad_alloc.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::gdeflate {

// False when page is not one whole page of exactly plain.size() bytes (at most 64 KiB), with
// nothing behind it. What plain holds then is not defined.
bool decode_page(ByteView page, MutableByteView plain);

// The same by the plain rounds alone, without the fast ones. For tests: it is the definition.
bool decode_page_plainly(ByteView page, MutableByteView plain);

}  // namespace nacre::engine::gdeflate
