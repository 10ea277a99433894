// SPDX-License-Identifier: Apache-2.0
#include "tools/web/assets.h"

namespace nacre::tools::web {

const Asset* find_asset(std::string_view name) {
  for (const Asset& asset : embedded_assets()) {
    if (asset.name == name) return &asset;
  }
  return nullptr;
}

}  // namespace nacre::tools::web
