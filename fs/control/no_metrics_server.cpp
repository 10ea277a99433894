// SPDX-License-Identifier: Apache-2.0
// Replaces metrics_server.cpp if libmicrohttpd is not there at build time.
#include "fs/control/metrics_server.h"

namespace nacre::fs {

bool metrics_are_built_in() {
  return false;
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(MetricsListener,
                                                            std::function<std::string()>) {
  return fail(ErrorCode::unsupported,
              "this Nacre was built without libmicrohttpd: it has no metrics=");
}

}  // namespace nacre::fs
