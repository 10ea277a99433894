// SPDX-License-Identifier: Apache-2.0
// fsck.nacre --salvage TARGET: makes a new volume elsewhere from one whose db/ is lost.
#pragma once

#include <string>

#include "tools/cli/secret_source.h"

namespace nacre::tools {

struct SalvageArguments {
  std::string volume;
  std::string target;
  std::string history;  // empty: the only one
  SecretOptions secret;
  std::string engine = "auto";
  bool json = false;
};

// Returns the exit status: 1 rebuilt, 4 rebuilt with losses, otherwise that of the error.
int salvage(const SalvageArguments& arguments);

}  // namespace nacre::tools
