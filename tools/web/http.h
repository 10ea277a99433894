// SPDX-License-Identifier: Apache-2.0
// What the HTTP server and the code behind it exchange. Nothing here knows libmicrohttpd.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <tl/expected.hpp>

#include "gpu_engine/base/bytes.h"
#include "metadata/backing/posix_file.h"
#include "tools/web/web_error.h"

namespace nacre::tools::web {

// The head of a request: everything but its body.
struct RequestHead {
  std::string method;
  std::string path;  // percent-escapes decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;
  std::optional<std::string> host, origin, fetch_site, fetch_mode, fetch_dest, upgrade,
      authorization, content_type, if_none_match, accept_encoding;
  std::optional<std::uint64_t> content_length;  // empty without a body, or if it is chunked
  std::optional<uid_t> peer_user;               // of the process at the other end, if it is known
  bool is_service_worker = false;               // a browser asks for the script of one

  std::string query_value(std::string_view name) const;
};

// An answer. One of body, asset, secret and file has the content.
struct Response {
  unsigned status = 200;
  std::string content_type = "application/json; charset=utf-8";
  std::string body;
  ByteView asset;                       // lives as long as the program
  std::shared_ptr<SecretBytes> secret;  // wiped once it is sent
  metadata::FileDescriptor file;
  std::uint64_t file_size_bytes = 0;
  std::vector<std::pair<std::string, std::string>> headers;
};

using Answer = tl::expected<Response, WebError>;

// Makes an answer of a JSON value. Bytes that are not UTF-8 are replaced.
Response json_response(const nlohmann::json& value, unsigned status = 200);
Response error_response(const WebError& error);

// One request whose head was accepted. Its calls come from one thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // The next bytes of the body. The callee may overwrite them. After an error no more bytes come,
  // and finish() is called.
  virtual bool take(MutableByteView bytes) = 0;
  virtual Response finish() = 0;
};

// Thread-safe: requests of several connections come at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Decides from the head alone. A refusal is answered without reading the body.
  virtual tl::expected<std::unique_ptr<Exchange>, Response> begin(RequestHead head) = 0;
};

}  // namespace nacre::tools::web
