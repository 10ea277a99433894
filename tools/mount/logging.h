// SPDX-License-Identifier: Apache-2.0
// Where the messages of a mount go. Until the mount is usable, warnings go to standard error, for
// whoever started it; from then on a daemon has syslog, or the file it was given.
#pragma once

#include <string>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

struct LogOptions {
  std::string file;  // empty: syslog for a daemon, standard error in the foreground
  bool foreground = false;
  bool verbose = false;
};

// Makes spdlog's default logger. Starts no thread. io when the file cannot be written.
Result<> start_logging(const LogOptions& options);
// The mount is usable: nothing more to standard error, unless in the foreground.
void leave_standard_error(const LogOptions& options);

}  // namespace nacre::tools
