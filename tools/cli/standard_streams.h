// SPDX-License-Identifier: Apache-2.0
// The descriptors 0, 1 and 2 belong to the standard streams, also where whoever started the program
// had closed them: another file that got such a number would be read as input, or written to by
// whatever prints, and a daemon replaces it by /dev/null.
#pragma once

namespace nacre::tools {

// Takes those that are closed, with something that can neither be read nor written: it stays an
// error to use them. Before anything else is opened.
void take_standard_streams();

}  // namespace nacre::tools
