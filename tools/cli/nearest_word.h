// SPDX-License-Identifier: Apache-2.0
// What was meant by a word that is not in a list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nacre::tools {

// The word of the list that differs least from the given one, by at most two letters changed,
// added, dropped, or swapped with a neighbour. '-' and '_' count as the same. Empty if there is
// none.
std::string nearest_word(std::string_view word, const std::vector<std::string>& list);

}  // namespace nacre::tools
