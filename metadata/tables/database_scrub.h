// SPDX-License-Identifier: Apache-2.0
// The keyless check of a file under db/, for who has to keep to a rate while it goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "metadata/tables/database.h"

namespace nacre::metadata {

// scrub_database_file(), with passed called after each stretch of so many bytes. It may wait; its
// error ends the check and is what comes back.
Result<std::uint64_t> scrub_database_file(
    BackingDirectory& directory, std::string_view path,
    const std::function<Result<void>(std::uint64_t size)>& passed);

}  // namespace nacre::metadata
