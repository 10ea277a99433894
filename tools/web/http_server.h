// SPDX-License-Identifier: Apache-2.0
// Serves HTTP/1.1 with GNU libmicrohttpd, on a thread for each connection. Bounds: 64 connections,
// 128 KiB for the head of a request, 60 seconds of silence. Every answer has the headers that keep
// the page to itself: Content-Security-Policy and its relatives.
#pragma once

#include <memory>

#include <chrono>
#include "gpu_engine/base/result.h"

#include "metadata/backing/posix_file.h"
#include "tools/web/http.h"

namespace nacre::tools::web {

class HttpServer {
 public:
  // socket listens already; the server owns it from now on. handler outlives the server. The head
  // of a request must be complete within head_limit (head_limit.h). Error: io.
  static Result<std::unique_ptr<HttpServer>> start(metadata::FileDescriptor socket,
                                                   HttpHandler& handler,
                                                   std::chrono::seconds head_limit);
  // Ends all connections, and waits for the requests that are being answered.
  virtual ~HttpServer() = default;
};

}  // namespace nacre::tools::web
