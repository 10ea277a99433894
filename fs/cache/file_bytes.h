// SPDX-License-Identifier: Apache-2.0
// References to bytes of a file in memory, which a reader gets instead of a copy.
#pragma once

#include <memory>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

// The parts are valid as long as the owners live, and those that lie in the reader's buffer as long
// as that buffer. Nobody changes the bytes meanwhile. Not thread-safe.
struct FileBytes {
  std::size_t size = 0;
  std::vector<ByteView> parts;                      // in order, size bytes together
  std::vector<std::shared_ptr<const void>> owners;  // owners of parts outside the reader's buffer

  // Appends bytes. If they follow the last part in memory, they extend it.
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
