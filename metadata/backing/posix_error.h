// SPDX-License-Identifier: Apache-2.0
// From errno to Error: the one place that translates it for the backing directory.
#pragma once

#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

// What is not listed means that the medium, or the way to it, does not work: io.
ErrorCode code_of_errno(int number);

// "where: the system's words".
tl::unexpected<Error> fail_errno(int number, std::string_view where);

// not_permitted: the file has a second name, and may be somebody else's file.
tl::unexpected<Error> fail_linked(const std::string& path);

}  // namespace nacre::metadata
