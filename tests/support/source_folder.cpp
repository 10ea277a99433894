// SPDX-License-Identifier: Apache-2.0
#include "tests/support/source_folder.h"

namespace nacre::tests {

std::string source_folder() {
  return NACRE_SOURCE_FOLDER;
}

}  // namespace nacre::tests
