// SPDX-License-Identifier: Apache-2.0
// Keeps keys and plaintext of this process out of core dumps, debuggers and swap.
#pragma once

#include <optional>
#include <string>

namespace nacre::tools {

// Before the first secret is read. Not dumpable (but in sanitizer builds, which need it), no cores,
// nothing of the memory in a core that is made all the same, as much locked memory as the limit
// allows. Processes forked later have all of this too.
void harden_process();

// The swap areas that are on and, as far as can be told, neither encrypted nor in memory. The
// argument is the text of /proc/swaps; sys is where sysfs is.
std::string unencrypted_swap(const std::string& swaps, const std::string& sys = "/sys");
// Says so on stderr when there are any.
void warn_of_unencrypted_swap();

}  // namespace nacre::tools
