// SPDX-License-Identifier: Apache-2.0
// One small file kept twice, "NAME" and "NAME.copy", so that one damaged block does not cost the
// volume. Both hold the same text; an update writes NAME first, then the copy, each as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/backing/backing.h"

namespace nacre::metadata {

struct ChosenCopy {
  Bytes text;
  // What is wrong with the other one, its path first: corrupt, missing, rolled_back (an update was
  // interrupted, or somebody put an older file back), io, permission.
  std::vector<Error> warnings;
};

// Reads both. generation_of checks a text as far as that goes without keys and gives its
// generation.
//   both the same         that text
//   one of them bad       the other, with a warning
//   an older and a newer  the newer, with a warning
//   same generation, but different: tampered
//   a later version in one of them: unsupported
// not_found when there is neither; otherwise the error of the first.
Result<ChosenCopy> read_copies(BackingDirectory& directory, std::string_view name,
                               std::size_t size_max,
                               const std::function<Result<std::uint64_t>(ByteView)>& generation_of);

// After a crash each copy is old or new, and one of them is whole at every moment.
Result<void> write_copies(BackingDirectory& directory, std::string_view name,
                          std::string_view text);

std::string copy_name(std::string_view name);  // "NAME.copy"

}  // namespace nacre::metadata
