// SPDX-License-Identifier: Apache-2.0
// The identity of a chunk's content. It is compared as a whole: two contents never have the same
// one.
#pragma once

#include <cstddef>
#include <string>

#include "metadata/format/rows.h"

namespace nacre::fs {

// The identity of a chunk's content, made from the chunk's row. Two rows of one chunk have equal
// identities exactly if both name the same versions with the same offsets and valid sizes, in the
// same roles, and the same lost ranges. A version is never used twice in a volume, and the bytes
// that it names never change; so equal identities mean equal bytes. The place of a record is not
// part of the identity: a record that moves keeps its version.
//
// A value: copies are independent. The identity of a row without patches and lost ranges takes no
// memory on the heap.
class ContentId {
 public:
  ContentId() = default;  // the identity of no row
  explicit ContentId(const metadata::ChunkRow& row);

  bool operator==(const ContentId&) const = default;
  // For finding a bucket of a table. Equal hashes do not mean equal identities.
  std::size_t hash() const noexcept;
  // Bytes on the heap that the identity may hold.
  std::size_t heap_size_bytes() const noexcept;

 private:
  // The row's parts one after the other; each row has exactly one such form (content_id.cpp).
  std::string parts_;
};

}  // namespace nacre::fs
