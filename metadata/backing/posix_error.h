// SPDX-License-Identifier: Apache-2.0
// Translates errno to Error for the backing directory.
#pragma once

#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

// The code for an errno. A number without a code of its own gives io: the medium, or the way to it,
// does not work.
ErrorCode code_of_errno(int number);

// The message is "where: TEXT", with the system's text for the number.
tl::unexpected<Error> fail_errno(int number, std::string_view where);

// Gives not_permitted, for a file that has a second name and may belong to another user.
tl::unexpected<Error> fail_linked(const std::string& path);

}  // namespace nacre::metadata
