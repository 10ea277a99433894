// SPDX-License-Identifier: Apache-2.0
// The facts that a reader sees of a volume whose parts may be damaged. Each fact by itself is right
// or refused.
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
  std::set<ErrorCode> codes;  // of the errors
};

// Reads everything, chunk by chunk, and continues after errors. Nothing is read below a directory
// that cannot be listed.
ObservedTree observe(fs::Volume& volume, std::uint32_t chunk_size_bytes);

// Returns nothing if each fact is that of the sound tree or refused, and none is missing without an
// error. Otherwise returns the first fact that breaks this.
std::string wrong_fact(const ObservedTree& found, const ObservedTree& sound);

}  // namespace nacre::tests
