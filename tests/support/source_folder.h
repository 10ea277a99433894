// SPDX-License-Identifier: Apache-2.0
// Where the tree lies that the tests were built from. Only one small source knows: a compiler cache
// would know none of the others in the next clone.
#pragma once

#include <string>

namespace nacre::tests {

std::string source_folder();

}  // namespace nacre::tests
