// SPDX-License-Identifier: Apache-2.0
// The keyless check of files under db/: header, CRCs and structure.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "gpu_engine/base/result.h"
#include "metadata/backing/backing.h"

namespace nacre::metadata {

// Checks one file under db/ without keys: structure and CRC of every page or frame. Returns the
// number of bytes that were checked. A torn tail of a log is not damage. Error: corrupt, with the
// offset.
Result<std::uint64_t> scrub_database_file(BackingDirectory& directory, std::string_view path);

// The same at a rate: passed is called after each stretch, with the stretch's size. It may wait. An
// error of passed ends the check and is returned.
Result<std::uint64_t> scrub_database_file(
    BackingDirectory& directory, std::string_view path,
    const std::function<Result<void>(std::uint64_t size)>& passed);

}  // namespace nacre::metadata
