// SPDX-License-Identifier: Apache-2.0
// Keeps keys and plaintext of this process out of core dumps, debuggers and swap.
#pragma once

#include <optional>
#include <string>

namespace nacre::tools {

// Call it before the first secret is read. The process becomes not dumpable (except in sanitizer
// builds, which need that), makes no cores, leaves its memory out of a core that is made all the
// same, and locks as much memory as the limit allows. Processes forked later inherit all of this.
void harden_process();

// The swap areas that are in use and, as far as can be told, neither encrypted nor in memory. The
// argument is the text of /proc/swaps; sys is the path of sysfs.
std::string unencrypted_swap(const std::string& swaps, const std::string& sys = "/sys");
// Warns on stderr if there are any.
void warn_of_unencrypted_swap();

}  // namespace nacre::tools
