// SPDX-License-Identifier: Apache-2.0
// Asks for a secret on the terminal, without an echo.
#pragma once

#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools {

// Whether a person sits there: standard input is a terminal, and the process has one to write to.
bool can_prompt();

// One line, without its newline. cancelled when the person interrupts or ends the input; the
// terminal is put back as it was. Not thread-safe.
Result<SecretBytes> prompt_secret(const std::string& prompt, std::size_t size_max);

}  // namespace nacre::tools
