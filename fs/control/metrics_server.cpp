// SPDX-License-Identifier: Apache-2.0
#include "fs/control/metrics_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/spdlog.h>

namespace nacre::fs {

namespace {

constexpr unsigned connection_count_max = 16;
constexpr unsigned silence_seconds_max = 10;
constexpr std::size_t connection_memory_bytes = 16u << 10;
constexpr const char* content_type = "text/plain; version=0.0.4; charset=utf-8";

// Accepts "localhost", any address 127.x.y.z and "[::1]", with or without a port, and HTTP/1.0
// requests, which have no Host. A name that only begins with "127." may lead anywhere.
bool is_local_host(const char* host) {
  if (host == nullptr) return true;
  std::string_view name(host);
  const auto bracket = name.rfind(']');
  const auto colon = name.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    name = name.substr(0, colon);
  }
  in_addr address{};
  const bool is_address = inet_pton(AF_INET, std::string(name).c_str(), &address) == 1;
  return name == "localhost" || name == "[::1]" ||
         (is_address && ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

MHD_Result answer(MHD_Connection* connection, unsigned status, std::string body, const char* type) {
  MHD_Response* response =
      MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

class HttpMetricsServer final : public MetricsServer {
 public:
  HttpMetricsServer(MetricsListener listener, std::function<std::string()> text)
      : listener_(std::move(listener)), text_(std::move(text)) {}
  ~HttpMetricsServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  Result<> begin() {
    // The server gets its own copy of the descriptor, which it closes when it stops.
    const int socket = ::fcntl(listener_.socket(), F_DUPFD_CLOEXEC, 0);
    if (socket < 0) return fail(ErrorCode::io, "no descriptor for the metrics' socket");
    daemon_ = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, nullptr,
                               nullptr, &handle, this, MHD_OPTION_EXTERNAL_LOGGER, &log, nullptr,
                               MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT,
                               connection_count_max, MHD_OPTION_CONNECTION_TIMEOUT,
                               silence_seconds_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                               connection_memory_bytes, MHD_OPTION_END);
    if (daemon_ != nullptr) return {};
    ::close(socket);
    return fail(ErrorCode::io, "the server of the metrics does not start");
  }

 private:
  // Errors of clients are not logged.
  static void log(void*, const char*, va_list) {}

  static MHD_Result handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char*, std::size_t* body_size,
                           void** state) {
    // The first call has only the headers.
    if (*state == nullptr) {
      *state = connection;
      return MHD_YES;
    }
    *body_size = 0;
    try {
      return static_cast<HttpMetricsServer*>(self)->respond(connection, url, method);
    } catch (const std::exception& error) {
      spdlog::warn("metrics: {}", error.what());
      return MHD_NO;
    }
  }

  MHD_Result respond(MHD_Connection* connection, std::string_view url, std::string_view method) {
    constexpr const char* plain = "text/plain; charset=utf-8";
    if (!is_local_host(
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST))) {
      return answer(connection, MHD_HTTP_FORBIDDEN, "only this machine may ask\n", plain);
    }
    if (url != "/metrics") {
      return answer(connection, MHD_HTTP_NOT_FOUND, "there is /metrics and nothing else\n", plain);
    }
    if (method != "GET" && method != "HEAD") {
      return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET it\n", plain);
    }
    return answer(connection, MHD_HTTP_OK, text_(), content_type);
  }

  const MetricsListener listener_;
  const std::function<std::string()> text_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

bool metrics_are_built_in() {
  return true;
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(MetricsListener listener,
                                                            std::function<std::string()> text) {
  auto server = std::make_unique<HttpMetricsServer>(std::move(listener), std::move(text));
  NACRE_TRY(server->begin());
  return server;
}

}  // namespace nacre::fs
