// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/nearest_word.h"

#include <algorithm>

namespace nacre::tools {

namespace {

// The edit distance of two words: letters to change, add or drop, and neighbours to swap.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t k = 0; k <= b.size(); ++k) {
      if (i == 0 || k == 0) {
        cost[i][k] = i + k;
        continue;
      }
      cost[i][k] = std::min({cost[i - 1][k] + 1, cost[i][k - 1] + 1,
                             cost[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1)});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        cost[i][k] = std::min(cost[i][k], cost[i - 2][k - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string with_hyphens(std::string_view word) {
  std::string out(word);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& list) {
  constexpr std::size_t word_size_max = 32;
  constexpr std::size_t distance_max = 2;
  std::string nearest;
  std::size_t least = distance_max + 1;
  for (const std::string& candidate : list) {
    if (word.size() > word_size_max || candidate.size() <= distance_max) continue;
    const auto distance = edit_distance(with_hyphens(word), with_hyphens(candidate));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace nacre::tools
