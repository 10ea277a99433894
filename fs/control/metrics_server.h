// SPDX-License-Identifier: Apache-2.0
// Answers GET /metrics over HTTP/1.1 with GNU libmicrohttpd, on a thread of its own, for at most 16
// connections, each of which is closed after 10 seconds of silence. On a port it answers only
// requests whose Host is localhost, an address 127.x.y.z or [::1], or is absent (HTTP/1.0). So no
// web page can make a browser on this machine fetch the metrics (DNS rebinding).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fs/control/metrics_address.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

class MetricsServer {
 public:
  // text returns the body of the answer. It is called on the server's thread for as long as the
  // server exists. Error: unsupported if Nacre was built without libmicrohttpd.
  static Result<std::unique_ptr<MetricsServer>> start(MetricsListener listener,
                                                      std::function<std::string()> text);
  virtual ~MetricsServer() = default;
};

// Whether Nacre was built with libmicrohttpd.
bool metrics_are_built_in();

}  // namespace nacre::fs
