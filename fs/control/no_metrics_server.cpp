// SPDX-License-Identifier: Apache-2.0
// In the place of metrics_server.cpp where there is no libmicrohttpd.
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
