// SPDX-License-Identifier: Apache-2.0
// The path of the source tree from which the tests were built. Only one small source file contains
// it. So a compiler cache can reuse all others in the next clone.
#pragma once

#include <string>

namespace nacre::tests {

std::string source_folder();

}  // namespace nacre::tests
