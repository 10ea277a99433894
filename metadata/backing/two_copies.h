// SPDX-License-Identifier: Apache-2.0
// A small file that is kept twice, as "NAME" and "NAME.copy", so that one damaged block does not
// cost the volume. Both hold the same text. An update writes NAME first, then the copy, each as a
// whole.
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
  // What is wrong with the other copy; each message begins with its path. Codes: corrupt, missing,
  // rolled_back (an update was interrupted, or an older file was put back), io, permission.
  std::vector<Error> warnings;
};

// Reads both copies. generation_of checks a text as far as that is possible without keys, and
// returns its generation, or the error that makes this copy bad. The result is:
//   both the same         that text
//   one of them bad       the other, with a warning
//   an older and a newer  the newer, with a warning
//   same generation, but different: tampered
//   a later version in one of them: unsupported
// Errors: not_found if there is neither copy; otherwise that of the first.
Result<ChosenCopy> read_copies(BackingDirectory& directory, std::string_view name,
                               std::size_t size_max,
                               const std::function<Result<std::uint64_t>(ByteView)>& generation_of);

// Writes both copies. After a crash each is old or new, and at every moment one of them is whole.
Result<void> write_copies(BackingDirectory& directory, std::string_view name,
                          std::string_view text);

std::string copy_name(std::string_view name);  // "NAME.copy"

}  // namespace nacre::metadata
