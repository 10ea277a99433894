// SPDX-License-Identifier: Apache-2.0
#include "tools/web/http_server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <exception>

#include <spdlog/spdlog.h>

#include "tools/web/assets.h"
#include "tools/web/head_limit.h"
#include "tools/web/peer_user.h"

namespace nacre::tools::web {

namespace {

constexpr unsigned connection_count_max = 64;
// The most connections of other users. Their requests are refused, and must leave room for those of
// the server's own user.
constexpr int foreign_count_max = 4;
constexpr unsigned silence_seconds_max = 60;
constexpr std::size_t connection_memory_bytes = 128u << 10;
constexpr std::size_t query_count_max = 32;
// A body of a refused request is read up to this size, so that the client sees the answer.
constexpr std::uint64_t drained_bytes_max = 64u << 10;

constexpr std::array<std::pair<const char*, const char*>, 9> fixed_headers = {{
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Embedder-Policy", "require-corp"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
    {"X-DNS-Prefetch-Control", "off"},
    {"X-Robots-Tag", "noindex"},
}};

// Kept for a connection: looked up once, when it begins.
struct Peer {
  std::optional<uid_t> user;
  bool is_foreign = false;
  HeadLimit::Place place;
};

Peer* peer_of(MHD_Connection* connection) {
  const auto* context = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return context == nullptr ? nullptr : static_cast<Peer*>(context->socket_context);
}

// Kept for a request between the calls of the library.
struct RequestState {
  std::unique_ptr<Exchange> exchange;
  std::optional<Response> refused;
  bool is_over = false;  // takes no more bytes
  std::uint64_t dropped_bytes = 0;
};

void wipe_secret(void* owner) {
  delete static_cast<std::shared_ptr<SecretBytes>*>(owner);
}

MHD_Response* make_response(Response& response) {
  if (response.file) {
    // The library closes the descriptor.
    const int copy = ::fcntl(response.file.get(), F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? nullptr : MHD_create_response_from_fd64(response.file_size_bytes, copy);
  }
  if (response.secret) {
    auto* owner = new std::shared_ptr<SecretBytes>(std::move(response.secret));
    Byte* const bytes = (*owner)->mutable_view().data();
    return MHD_create_response_from_buffer_with_free_callback_cls((*owner)->size(), bytes,
                                                                  &wipe_secret, owner);
  }
  if (response.asset.data() != nullptr) {
    return MHD_create_response_from_buffer(
        response.asset.size(), const_cast<Byte*>(response.asset.data()), MHD_RESPMEM_PERSISTENT);
  }
  return MHD_create_response_from_buffer(response.body.size(), response.body.data(),
                                         MHD_RESPMEM_MUST_COPY);
}

MHD_Result send(MHD_Connection* connection, Response response) {
  MHD_Response* made = make_response(response);
  if (made == nullptr) return MHD_NO;
  for (const auto& [name, value] : fixed_headers)
    MHD_add_response_header(made, name, value);
  static const std::string policy = content_security_policy();
  MHD_add_response_header(made, "Content-Security-Policy", policy.c_str());
  MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
  bool has_cache_rule = false;
  for (const auto& [name, value] : response.headers) {
    MHD_add_response_header(made, name.c_str(), value.c_str());
    has_cache_rule |= name == MHD_HTTP_HEADER_CACHE_CONTROL;
  }
  if (!has_cache_rule) MHD_add_response_header(made, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  const MHD_Result queued = MHD_queue_response(connection, response.status, made);
  MHD_destroy_response(made);
  return queued;
}

std::optional<std::string> header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

MHD_Result add_query(void* head, MHD_ValueKind, const char* name, const char* value) {
  auto& query = static_cast<RequestHead*>(head)->query;
  if (query.size() == query_count_max) return MHD_NO;
  query.emplace_back(name, value == nullptr ? "" : value);
  return MHD_YES;
}

RequestHead read_head(MHD_Connection* connection, const char* url, const char* method) {
  RequestHead head{.method = method, .path = url};
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &add_query, &head);
  head.host = header(connection, MHD_HTTP_HEADER_HOST);
  head.origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
  head.fetch_site = header(connection, "Sec-Fetch-Site");
  head.fetch_mode = header(connection, "Sec-Fetch-Mode");
  head.fetch_dest = header(connection, "Sec-Fetch-Dest");
  head.upgrade = header(connection, MHD_HTTP_HEADER_UPGRADE);
  head.authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
  head.content_type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
  head.if_none_match = header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
  head.accept_encoding = header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  head.is_service_worker = header(connection, "Service-Worker") == "script";
  if (const auto size = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
    std::uint64_t bytes = 0;
    const auto parsed = std::from_chars(size->data(), size->data() + size->size(), bytes);
    if (parsed.ec == std::errc()) head.content_length = bytes;
  }
  if (const Peer* peer = peer_of(connection)) head.peer_user = peer->user;
  return head;
}

class MicroHttpServer final : public HttpServer {
 public:
  MicroHttpServer(metadata::FileDescriptor socket, HttpHandler& handler,
                  std::chrono::seconds head_limit)
      : socket_(std::move(socket)), handler_(handler), heads_(head_limit) {}
  ~MicroHttpServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  Result<> begin() {
    const int socket = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0);  // the library closes it
    if (socket < 0) return fail(ErrorCode::io, "no descriptor for the server's socket");
    daemon_ = MHD_start_daemon(
        MHD_USE_POLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
            MHD_USE_ERROR_LOG,
        0, nullptr, nullptr, &handle, this, MHD_OPTION_EXTERNAL_LOGGER, &log, nullptr,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, connection_count_max,
        MHD_OPTION_CONNECTION_TIMEOUT, silence_seconds_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        connection_memory_bytes, MHD_OPTION_NOTIFY_CONNECTION, &connection_changed, this,
        MHD_OPTION_NOTIFY_COMPLETED, &request_over, this, MHD_OPTION_END);
    if (daemon_ != nullptr) return {};
    metadata::FileDescriptor closed(socket);
    return fail(ErrorCode::io, "the server does not start: libmicrohttpd refuses its socket");
  }

 private:
  // Errors of clients are not logged.
  static void log(void*, const char*, va_list) {}

  static void connection_changed(void* self, MHD_Connection* connection, void** context,
                                 MHD_ConnectionNotificationCode what) {
    auto& foreign_count = static_cast<MicroHttpServer*>(self)->foreign_count_;
    auto& heads = static_cast<MicroHttpServer*>(self)->heads_;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      auto* const peer = static_cast<Peer*>(*context);
      if (peer != nullptr && peer->is_foreign) --foreign_count;
      if (peer != nullptr) heads.leave(peer->place);
      delete peer;
      *context = nullptr;
      return;
    }
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == nullptr) return;
    try {
      auto peer = std::make_unique<Peer>();
      peer->user = peer_user(info->connect_fd);
      peer->is_foreign = peer->user != ::geteuid();
      // The library sees the end of a connection that is shut down, and closes it.
      if (peer->is_foreign && ++foreign_count > foreign_count_max) {
        ::shutdown(info->connect_fd, SHUT_RDWR);
      }
      peer->place = heads.enter(info->connect_fd);
      *context = peer.release();
    } catch (const std::exception& error) {
      spdlog::warn("a connection's owner was not found: {}", error.what());
    }
  }

  static void request_over(void* self, MHD_Connection* connection, void** state,
                           MHD_RequestTerminationCode) {
    delete static_cast<RequestState*>(*state);
    *state = nullptr;
    if (Peer* peer = peer_of(connection)) {
      static_cast<MicroHttpServer*>(self)->heads_.waits(peer->place);
    }
  }

  static MHD_Result handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char* body,
                           std::size_t* body_size, void** state) {
    try {
      if (*state == nullptr) {
        return static_cast<MicroHttpServer*>(self)->begin_request(connection, url, method, state);
      }
      return go_on(connection, *static_cast<RequestState*>(*state), body, body_size);
    } catch (const std::exception& error) {
      spdlog::warn("a request was dropped: {}", error.what());
      return MHD_NO;
    }
  }

  MHD_Result begin_request(MHD_Connection* connection, const char* url, const char* method,
                           void** state) {
    if (Peer* peer = peer_of(connection)) heads_.has_head(peer->place);
    auto made = std::make_unique<RequestState>();
    RequestHead head = read_head(connection, url, method);
    const bool is_small = head.content_length && *head.content_length <= drained_bytes_max;
    const bool has_body = !is_small || *head.content_length > 0;
    const bool is_get = head.method == "GET" || head.method == "HEAD";
    auto begun = handler_.begin(std::move(head));
    if (begun) {
      made->exchange = std::move(*begun);
    } else {
      made->refused = std::move(begun.error());
    }
    if (made->refused && has_body && !is_small && !is_get) {
      // The rest of the body is not read: the library closes the connection after the answer.
      const MHD_Result sent = send(connection, std::move(*made->refused));
      *state = made.release();
      return sent;
    }
    *state = made.release();
    return MHD_YES;
  }

  static MHD_Result go_on(MHD_Connection* connection, RequestState& state, const char* body,
                          std::size_t* body_size) {
    if (*body_size > 0) {
      // The buffer is the library's own. It may be overwritten, and secrets in it are.
      auto* bytes = reinterpret_cast<Byte*>(const_cast<char*>(body));
      if (state.exchange && !state.is_over) {
        state.is_over = !state.exchange->take({bytes, *body_size});
      } else {
        state.dropped_bytes += *body_size;
      }
      if (state.dropped_bytes > drained_bytes_max) return MHD_NO;  // closes the connection
      *body_size = 0;
      return MHD_YES;
    }
    if (state.refused) return send(connection, std::move(*state.refused));
    return send(connection, state.exchange->finish());
  }

  const metadata::FileDescriptor socket_;
  HttpHandler& handler_;
  HeadLimit heads_;
  std::atomic<int> foreign_count_ = 0;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(metadata::FileDescriptor socket,
                                                      HttpHandler& handler,
                                                      std::chrono::seconds head_limit) {
  auto server = std::make_unique<MicroHttpServer>(std::move(socket), handler, head_limit);
  NACRE_TRY(server->begin());
  return server;
}

}  // namespace nacre::tools::web
