// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace nacre::tools {

void take_standard_streams() {
  // open() gives the lowest free number. Programs that this one starts inherit these descriptors,
  // because they have the same trouble.
  while (true) {
    const int number = ::open("/", O_PATH | O_DIRECTORY);
    if (number < 0) return;
    if (number > STDERR_FILENO) {
      ::close(number);
      return;
    }
  }
}

}  // namespace nacre::tools
