// SPDX-License-Identifier: Apache-2.0
// Where the messages of a mount go. Until the mount is usable, warnings go to standard error, for
// whoever started it; from then on a daemon has syslog, or the file it was given.
#pragma once

#include <cstdint>
#include <string>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

enum class LogTarget : std::uint8_t {
  automatic,  // the file if there is one; syslog for a daemon, standard error in the foreground
  journal,    // systemd's, with fields
  json,       // the file, a line of JSON a message
};

struct LogOptions {
  LogTarget target = LogTarget::automatic;
  std::string file;
  std::string volume;  // what messages are about: a field of journal and JSON
  bool foreground = false;
  bool verbose = false;
};

// Whether names of files may stand in messages: not in the system's log, which others read and
// which outlives the volume, unless somebody asked for more of them.
bool may_name_files(const LogOptions& options);

// Makes spdlog's default logger; each message is one printable line. Starts no thread. io when the
// file cannot be written; not_found when there is no journal.
Result<> start_logging(const LogOptions& options);
// The mount is usable: nothing more to standard error, unless in the foreground.
void leave_standard_error(const LogOptions& options);

}  // namespace nacre::tools
