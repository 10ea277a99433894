// SPDX-License-Identifier: Apache-2.0
// Answers GET /metrics over HTTP/1.1 by GNU libmicrohttpd, on a thread of its own: at most 16
// connections, 10 seconds of silence each. Of a port only requests whose Host is a name of the
// loopback are answered, so that no web page can have a browser of this machine fetch them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fs/control/metrics_address.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

class MetricsServer {
 public:
  // text: what is answered, called on the server's thread until the server is gone. unsupported
  // where this was built without libmicrohttpd.
  static Result<std::unique_ptr<MetricsServer>> start(MetricsListener listener,
                                                      std::function<std::string()> text);
  virtual ~MetricsServer() = default;
};

// False where this was built without libmicrohttpd.
bool metrics_are_built_in();

}  // namespace nacre::fs
