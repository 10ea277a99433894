// SPDX-License-Identifier: Apache-2.0
// The files of the page, which cmake/embed_files.cmake puts into the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"

namespace nacre::tools::web {

struct Asset {
  std::string_view name;  // without a slash in front
  const char* content_type = "";
  std::string_view tag;  // the file's SHA-256 in hexadecimal digits
  ByteView bytes;
  ByteView gzip_bytes;  // the same, compressed (RFC 1952)
};

// Made at build time from tools/web/assets.txt (bundle_page.cpp).
std::span<const Asset> embedded_assets();

// The Content-Security-Policy of every answer: nothing but the server's own scripts, pictures and
// requests, and the one style sheet that stands in index.html, by its hash.
std::string content_security_policy();

// Null if there is none of that name.
const Asset* find_asset(std::string_view name);

}  // namespace nacre::tools::web
