// SPDX-License-Identifier: Apache-2.0
// Paths and names as JSON carries them. A file name may hold any bytes but '/' and NUL, and JSON
// holds UTF-8, so bytes that are not well-formed UTF-8, control characters, U+2028, U+2029 and '%'
// are written as %XX. The mapping is one to one. API.md calls the result "path text".
#pragma once

#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

std::string to_path_text(std::string_view path);
// The reverse of to_path_text(). It takes unescaped bytes as they are. Error: invalid_argument for
// a '%' without two hexadecimal digits, and for NUL.
Result<std::string> from_path_text(std::string_view text);

// A path of a request: absolute, or below "~/" in the user's home, made lexically normal. Error:
// invalid_argument.
Result<std::string> request_path(std::string_view path_text);

// The user's home folder: $HOME, else what the user database says, else "/".
std::string home_folder();

// The last part of a path; "/" for the root.
std::string last_name(std::string_view path);

// One argument as sh reads it: unquoted if that is safe, else in '…'. Arguments with control
// characters or bytes that are not UTF-8 are written as $'…', which bash, ksh and zsh read.
std::string shell_quote(std::string_view argument);

}  // namespace nacre::tools::web
