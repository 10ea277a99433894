// SPDX-License-Identifier: Apache-2.0
// A digest of texts that together may be longer than memory should hold.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::fs {

// Folds SHA-256 over the sizes and bytes of all texts that were added, in their order: the state
// after each piece of about 1 MiB is SHA-256(state before || piece), and the first state is 32 zero
// bytes. A size is 8 bytes, the lowest first. Not thread-safe.
class TextDigest {
 public:
  void add(std::string_view text) {
    std::array<Byte, sizeof(std::uint64_t)> size;
    store_le(size.data(), std::uint64_t{text.size()});
    piece_ += as_text(size);
    piece_ += text;
    if (piece_.size() >= piece_size_bytes) fold();
  }
  // The digest of everything added so far. Called once, at the end: it closes the open piece, so a
  // later call would give another value even if nothing was added in between.
  engine::Sha256Digest take() {
    fold();
    return state_;
  }

 private:
  static constexpr std::size_t piece_size_bytes = 1u << 20;
  void fold() {
    state_ = engine::sha256(as_bytes(std::string(as_text(state_)) + piece_));
    piece_.clear();
  }
  engine::Sha256Digest state_ = {};
  std::string piece_;
};

}  // namespace nacre::fs
