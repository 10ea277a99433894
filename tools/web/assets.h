// SPDX-License-Identifier: Apache-2.0
// The files of the page, which cmake/embed_files.cmake puts into the program.
#pragma once

#include <span>
#include <string_view>

#include "gpu_engine/base/bytes.h"

namespace nacre::tools::web {

struct Asset {
  std::string_view name;  // relative to tools/web/assets, without a slash in front
  const char* content_type = "";
  std::string_view tag;  // the file's SHA-256 in hexadecimal digits
  ByteView bytes;
  ByteView gzip_bytes;  // the same, compressed (RFC 1952)
};

// Made at build time from tools/web/assets.txt.
std::span<const Asset> embedded_assets();

// Null if there is none of that name.
const Asset* find_asset(std::string_view name);

}  // namespace nacre::tools::web
