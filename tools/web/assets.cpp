// SPDX-License-Identifier: Apache-2.0
#include "tools/web/assets.h"

#include "gpu_engine/kdf/kdf.h"
#include "metadata/text/text_bytes.h"

namespace nacre::tools::web {

namespace {

std::string_view sheet_of_page() {
  constexpr std::string_view begin = "<style>", end = "</style>";
  const Asset* const page = find_asset("index.html");
  const std::string_view html = page == nullptr ? std::string_view() : as_text(page->bytes);
  const auto first = html.find(begin);
  if (first == std::string_view::npos) return {};
  const auto inner = html.substr(first + begin.size());
  return inner.substr(0, inner.find(end));
}

}  // namespace

std::string content_security_policy() {
  const auto digest = engine::sha256(as_bytes(sheet_of_page()));
  return "default-src 'none'; script-src 'self'; style-src 'sha256-" +
         metadata::to_base64(ByteView(digest)) +
         "'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
         "form-action 'none'";
}

const Asset* find_asset(std::string_view name) {
  for (const Asset& asset : embedded_assets()) {
    if (asset.name == name) return &asset;
  }
  return nullptr;
}

}  // namespace nacre::tools::web
