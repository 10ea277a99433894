// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/exit_code.h"

namespace nacre::tools {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::corrupt:
    case ErrorCode::tampered:
    case ErrorCode::missing:
    case ErrorCode::rolled_back:
      return exit_damage;
    case ErrorCode::wrong_key:
      return exit_wrong_key;
    case ErrorCode::busy:
      return exit_busy;
    case ErrorCode::invalid_argument:
      return exit_usage;
    default:
      return exit_operational;
  }
}

}  // namespace nacre::tools
