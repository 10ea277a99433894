// SPDX-License-Identifier: Apache-2.0
// A rotation or a scrub of a mounted volume belongs to its daemon. The command that begins it ends
// at once; from then on its job only watches the daemon, and ends when the daemon has done it.
#pragma once

#include <string>

#include "tools/web/jobs.h"

namespace nacre::tools::web {

enum class DaemonWork : std::uint8_t { rotation, scrub };

// Hands the job over (Job::hand_over()) and watches until the daemon is done. If the volume is
// unmounted meanwhile, it waits for the next mount, which goes on. volume: a volume's folder or its
// mount point. The result of a scrub is its report, that of a rotation stays what the job has.
// Errors: what the daemon stopped with; cancelled.
tl::expected<void, WebError> watch_daemon_work(Job& job, const std::string& volume,
                                               DaemonWork work);

// The volume's new fingerprint, if a command of `nacre key` printed one; else empty.
std::string printed_fingerprint(const std::string& output);

}  // namespace nacre::tools::web
