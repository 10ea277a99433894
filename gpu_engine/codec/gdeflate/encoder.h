// SPDX-License-Identifier: Apache-2.0
// Encodes GDeflate pages (format.h). Thread-safe: tables are per thread. May throw std::bad_alloc.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::gdeflate {

// level: 1 fastest … 9 smallest. plain: 1 to 65536 bytes. out: any size. Returns the size of the
// page, or 0 when the page would not be smaller than plain or does not fit into out.
std::size_t encode_page(int level, ByteView plain, MutableByteView out);

// The same as encode_page(), but the page has no matches.
std::size_t encode_page_of_literals(ByteView plain, MutableByteView out);

}  // namespace nacre::engine::gdeflate
