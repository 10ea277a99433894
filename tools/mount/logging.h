// SPDX-License-Identifier: Apache-2.0
// Where the messages of a mount go. Until the mount is usable, warnings go to standard error, where
// the user sees them. From then on a daemon writes to syslog or to the file it was given.
#pragma once

#include <cstdint>
#include <string>

#include "fs/control/recent_messages.h"
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

// Whether messages may name files. They may not in the system's log, which others read and which
// outlives the volume, unless the user asked for more messages.
bool may_name_files(const LogOptions& options);

// The newest messages, wherever else they go.
const fs::RecentMessages& recent_messages();

// Makes spdlog's default logger; each message is one printable line. Starts no thread. Errors: io
// if the file cannot be written, not_found if there is no journal.
Result<> start_logging(const LogOptions& options);
// Call it when the mount is usable. From then on standard error gets nothing, unless the mount runs
// in the foreground.
void leave_standard_error(const LogOptions& options);

}  // namespace nacre::tools
