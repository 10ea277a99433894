// SPDX-License-Identifier: Apache-2.0
// Asks on the terminal: for a secret, without an echo; or whether something is to be done.
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

// One line, with an echo: true for "yes", spelt out. Else as prompt_secret().
Result<bool> prompt_yes(const std::string& question);

}  // namespace nacre::tools
