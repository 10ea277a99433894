// SPDX-License-Identifier: Apache-2.0
// What a reader sees of a volume of which parts may be damaged: each fact by itself, right or
// refused.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "fs/volume/volume.h"

namespace nacre::tests {

struct ObservedTree {
  // "PATH|FACT": attributes, names (of a directory), target, xattrs (their names), xattr NAME,
  // chunk N. None: reading it gave an error.
  std::map<std::string, std::optional<std::string>> facts;
  std::set<ErrorCode> codes;  // of these errors
};

// Reads everything, chunk by chunk, and goes on behind errors. Below a directory that cannot be
// listed nothing is looked at.
ObservedTree observe(fs::Volume& volume, std::uint32_t chunk_size_bytes);

// Empty when each fact is that of the sound tree or refused, and none is missing without an error;
// else the first that is not.
std::string wrong_fact(const ObservedTree& found, const ObservedTree& sound);

}  // namespace nacre::tests
