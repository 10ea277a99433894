// SPDX-License-Identifier: Apache-2.0
// Bytes of a file where they lie: what a reader is handed instead of a copy.
#pragma once

#include <memory>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

struct FileBytes {
  std::size_t size = 0;
  std::vector<ByteView> parts;                      // in order, size bytes together
  std::vector<std::shared_ptr<const void>> owners;  // of those that lie not in the reader's buffer

  // The next bytes; where they lie behind the last ones they are one part.
  void add(ByteView bytes) {
    size += bytes.size();
    if (!parts.empty() && parts.back().data() + parts.back().size() == bytes.data()) {
      parts.back() = {parts.back().data(), parts.back().size() + bytes.size()};
    } else {
      parts.push_back(bytes);
    }
  }
};

}  // namespace nacre::fs
