// SPDX-License-Identifier: Apache-2.0
// Chooses the parser of a level.
#include "gpu_engine/codec/gdeflate/parse.h"

namespace nacre::engine::gdeflate {

namespace {

constexpr ChainEffort efforts[10] = {
    {},          {},          {4, 16, 0},    {12, 32, 0},   {12, 24, 1},
    {24, 48, 1}, {48, 96, 2}, {160, 258, 2}, {400, 258, 2}, {1000, 1000, 2},
};

constexpr OptimalEffort optimal_efforts[2] = {{32, 128, 2}, {128, 258, 3}};

}  // namespace

void parse(int level, ByteView plain, ItemList& items) {
  if (level == 1)
    parse_fast(plain, items);
  else if (level >= 8)
    parse_optimal(optimal_efforts[level - 8], plain, items);
  else
    parse_chains(efforts[level], plain, items);
}

}  // namespace nacre::engine::gdeflate
