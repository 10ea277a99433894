// SPDX-License-Identifier: Apache-2.0
// Asks on the terminal for a secret, without an echo, or for a yes or no.
#pragma once

#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools {

// Whether a person can answer: standard input is a terminal, and the process has one to write to.
bool can_prompt();

// Reads one line, without its newline. Error: cancelled if the person interrupts or ends the input.
// The terminal is restored in any case. Not thread-safe.
Result<SecretBytes> prompt_secret(const std::string& prompt, std::size_t size_max);

// Reads one line with an echo: true for the whole word "yes". Otherwise like prompt_secret().
Result<bool> prompt_yes(const std::string& question);

}  // namespace nacre::tools
