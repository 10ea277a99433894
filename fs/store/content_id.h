// SPDX-License-Identifier: Apache-2.0
// What a chunk's content is made of, compared whole: no two contents have one identity.
#pragma once

#include <cstddef>
#include <string>

#include "metadata/format/rows.h"

namespace nacre::fs {

// The identity of a chunk's content, from the chunk's row. Two rows of one chunk have equal
// identities exactly when both name the same versions with the same offsets and valid sizes, in the
// same roles, and the same lost ranges. A version is never used twice in a volume, and what it
// names never changes; so equal identities mean equal bytes. Where a record lies is no part of it:
// a record that moves keeps its version.
//
// A value: copies are independent. Of a row without patches and lost ranges it takes no memory of
// its own.
class ContentId {
 public:
  ContentId() = default;  // of no row
  explicit ContentId(const metadata::ChunkRow& row);

  bool operator==(const ContentId&) const = default;
  // Finds a bucket of a table, and says nothing of equality.
  std::size_t hash() const noexcept;
  // Bytes on the heap that the identity may hold.
  std::size_t heap_size_bytes() const noexcept;

 private:
  // The row's parts one after the other, in a form of which each has one only (content_id.cpp).
  std::string parts_;
};

}  // namespace nacre::fs
