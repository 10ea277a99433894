// SPDX-License-Identifier: Apache-2.0
// The keyless check of files under db/: header, CRCs and structure.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "gpu_engine/base/result.h"
#include "metadata/backing/backing.h"

namespace nacre::metadata {

// The keyless check of one file under db/: structure and CRC of every page or frame. Returns bytes
// checked; corrupt names the offset. A torn tail of a log is not damage.
Result<std::uint64_t> scrub_database_file(BackingDirectory& directory, std::string_view path);

// The same at a rate: passed is called after each stretch, with its bytes. It may wait; its error
// ends the check and is what comes back.
Result<std::uint64_t> scrub_database_file(
    BackingDirectory& directory, std::string_view path,
    const std::function<Result<void>(std::uint64_t size)>& passed);

}  // namespace nacre::metadata
