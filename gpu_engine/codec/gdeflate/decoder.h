// SPDX-License-Identifier: Apache-2.0
// Decodes GDeflate pages (format.h). Thread-safe: tables are per thread. May throw std::bad_alloc.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::gdeflate {

// False when page is not one whole page of exactly plain.size() bytes (at most 64 KiB) with nothing
// behind it; the content of plain is then undefined.
bool decode_page(ByteView page, MutableByteView plain);

// The same as decode_page(), but without the fast rounds. For tests, which compare the two.
bool decode_page_plainly(ByteView page, MutableByteView plain);

}  // namespace nacre::engine::gdeflate
