// SPDX-License-Identifier: Apache-2.0
// The descriptors 0, 1 and 2 belong to the standard streams, even if the program was started with
// them closed. If another file got such a number, it would be read as input, or messages would be
// written into it, and a daemon would replace it by /dev/null.
#pragma once

namespace nacre::tools {

// Occupies those that are closed with a file that can be neither read nor written, so using them
// stays an error. Call it before anything else is opened.
void take_standard_streams();

}  // namespace nacre::tools
