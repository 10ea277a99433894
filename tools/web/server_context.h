// SPDX-License-Identifier: Apache-2.0
// What the answers of one server share. Each part is thread-safe.
#pragma once

#include <memory>
#include <string>

#include "tools/web/access.h"
#include "tools/web/jobs.h"
#include "tools/web/live_history.h"
#include "tools/web/private_folder.h"
#include "tools/web/repair_plans.h"
#include "tools/web/request_checks.h"

namespace nacre::tools::web {

// Made once, before the server answers its first request; from then on, only the parts change. It
// outlives the server.
struct ServerContext {
  RequestRules rules;
  std::string page_address;    // "http://127.0.0.1:PORT/"; for a Unix socket with the word PORT
  unsigned idle_minutes = 10;  // the server ends when no page was open for this long
  std::unique_ptr<PrivateFolder> folder;
  Access access;
  LiveHistory live;
  RepairPlans repair_plans;
  JobTable jobs;  // the last: jobs use what stands above
};

}  // namespace nacre::tools::web
