// SPDX-License-Identifier: Apache-2.0
// Exit codes: a stable part of the command line (nacre(1), EXIT STATUS).
#pragma once

#include "gpu_engine/base/result.h"

namespace nacre::tools {

enum ExitCode : int {
  exit_fine = 0,
  exit_corrected = 1,
  exit_usage = 2,
  exit_damage = 4,       // uncorrected damage
  exit_operational = 8,  // the system, or what was asked for, did not allow it
  exit_wrong_key = 16,
  exit_busy = 32,
};

int exit_code_of(ErrorCode code);

}  // namespace nacre::tools
