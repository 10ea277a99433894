// SPDX-License-Identifier: Apache-2.0
// From the head of a request to its answer: the checks, the bearer token, the body, the route.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include "fs/control/message.h"
#include "metadata/backing/posix_error.h"
#include "tools/cli/secret_source.h"
#include "tools/web/assets.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

constexpr std::string_view json_type = "application/json";
constexpr std::string_view bytes_type = "application/octet-stream";
constexpr std::string_view download_prefix = "/download/";

Response not_found() {
  return error_response(WebError(Error{ErrorCode::not_found, "there is nothing at this address"}));
}

Response wrong_method(std::string allowed) {
  Response response =
      error_response(refusal("method", 405, "this address does not take this method"));
  response.headers.emplace_back("Allow", std::move(allowed));
  return response;
}

// A server that had this port before may have left a service worker in the browser, which would see
// the address of the page. The browser looks for its script here and drops it.
Response no_service_worker() {
  Response response = not_found();
  response.headers.emplace_back("Clear-Site-Data", "\"storage\"");
  return response;
}

bool is_of_type(const RequestHead& head, std::string_view type) {
  if (!head.content_type) return false;
  const std::string_view given(*head.content_type);
  return given == type || given.starts_with(std::string(type) + ";");
}

std::optional<WebError> check_body(const RequestHead& head, BodyKind kind) {
  if (kind == BodyKind::none) return std::nullopt;
  const bool is_json = kind == BodyKind::json;
  const std::string_view type = is_json ? json_type : bytes_type;
  if (!is_of_type(head, type)) {
    return refusal("content_type", 415, fmt::format("the body must be {}", type));
  }
  const std::size_t size_max = is_json ? json_size_bytes_max : passphrase_size_bytes_max;
  if (kind != BodyKind::upload && head.content_length.value_or(0) > size_max) {
    return refusal("body_size", 413, "the body is too large");
  }
  return std::nullopt;
}

// An answer that was ready with the head: an asset.
class ReadyExchange final : public Exchange {
 public:
  explicit ReadyExchange(Response response) : response_(std::move(response)) {}
  bool take(MutableByteView) override { return false; }
  Response finish() override { return std::move(response_); }

 private:
  Response response_;
};

class ApiExchange final : public Exchange {
 public:
  ApiExchange(const Route& route, Call call)
      : route_(route), call_(std::move(call)), secret_(secret_room(route)) {}

  bool take(MutableByteView bytes) override {
    if (error_) return false;
    switch (route_.body) {
      case BodyKind::none:
        return false;
      case BodyKind::json:
        if (text_.size() + bytes.size() > json_size_bytes_max) return too_large();
        text_ += as_text(bytes);
        return true;
      case BodyKind::secret:
        return take_secret(bytes);
      case BodyKind::upload:
        if (const auto written = call_.upload->write(bytes); !written) error_ = written.error();
        return !error_;
    }
    return false;
  }

  Response finish() override {
    if (!error_ && route_.body == BodyKind::json) parse();
    if (!error_ && route_.body == BodyKind::secret) {
      call_.secret = SecretBytes(secret_.view().first(secret_size_));
    }
    if (error_) return error_response(*error_);
    Answer answer = route_.answer(call_);
    return answer ? std::move(*answer) : error_response(answer.error());
  }

 private:
  static SecretBytes secret_room(const Route& route) {
    return SecretBytes(route.body == BodyKind::secret ? passphrase_size_bytes_max : 0);
  }

  bool too_large() {
    error_ = refusal("body_size", 413, "the body is too large");
    return false;
  }

  // The bytes that came through the library's buffer are wiped there.
  bool take_secret(MutableByteView bytes) {
    const bool fits = bytes.size() <= secret_.size() - secret_size_;
    if (fits) {
      std::copy(bytes.begin(), bytes.end(), secret_.mutable_view().begin() + secret_size_);
      secret_size_ += bytes.size();
    }
    wipe(bytes);
    return fits || too_large();
  }

  void parse() {
    if (!fs::is_shallow(text_)) {
      error_ = Error{ErrorCode::invalid_argument, "the body is nested too deeply"};
      return;
    }
    call_.body = nlohmann::json::parse(text_.empty() ? "{}" : text_, nullptr, false);
    if (!call_.body.is_object()) {
      error_ = Error{ErrorCode::invalid_argument, "the body is no JSON object"};
    }
  }

  const Route& route_;
  Call call_;
  std::string text_;
  SecretBytes secret_;
  std::size_t secret_size_ = 0;
  std::optional<WebError> error_;
};

Response asset_response(const Asset& asset, const RequestHead& head) {
  Response response;
  response.content_type = asset.content_type;
  const bool takes_gzip =
      head.accept_encoding && head.accept_encoding->find("gzip") != std::string::npos;
  const std::string tag = fmt::format("\"{}{}\"", asset.tag, takes_gzip ? "-gzip" : "");
  response.headers = {{"ETag", tag}, {"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}};
  if (takes_gzip) response.headers.emplace_back("Content-Encoding", "gzip");
  if (head.if_none_match == tag) {
    response.status = 304;
  } else {
    response.asset = takes_gzip ? asset.gzip_bytes : asset.bytes;
  }
  return response;
}

class Router final : public HttpHandler {
 public:
  explicit Router(ServerContext& context) : context_(context), routes_(all_routes(context)) {}

  tl::expected<std::unique_ptr<Exchange>, Response> begin(RequestHead head) override {
    const bool is_api = head.path.starts_with("/api/");
    if (const auto refused = check_request(context_.rules, head, !is_api)) {
      return tl::unexpected(error_response(*refused));
    }
    if (head.is_service_worker) return tl::unexpected(no_service_worker());
    if (is_api) return begin_api(std::move(head));
    if (head.method != "GET" && head.method != "HEAD") {
      return tl::unexpected(wrong_method("GET, HEAD"));
    }
    return std::make_unique<ReadyExchange>(page_response(head));
  }

 private:
  tl::expected<std::unique_ptr<Exchange>, Response> begin_api(RequestHead head) {
    auto match = routes_.find(head.method, head.path);
    const bool is_open = match.route != nullptr && !match.route->needs_token;
    // Without a token the answer says nothing, not even which addresses exist.
    if (!is_open && !context_.access.is_bearer(head.authorization.value_or(""))) {
      Response response = error_response(
          refusal("bearer_token", 401, "open the page with the address that nacre web printed"));
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
      return tl::unexpected(std::move(response));
    }
    if (match.route == nullptr) {
      if (match.is_known_path) return tl::unexpected(wrong_method("GET, POST, DELETE"));
      return tl::unexpected(not_found());
    }
    if (const auto refused = check_body(head, match.route->body)) {
      return tl::unexpected(error_response(*refused));
    }
    Call call{.head = std::move(head), .words = std::move(match.words)};
    if (match.route->body == BodyKind::upload) {
      auto upload = context_.folder->begin_upload(call.head.query_value("name"));
      if (!upload) {
        WebError error(upload.error());
        if (error.code == ErrorCode::invalid_argument) error.check = "upload_name";
        return tl::unexpected(error_response(error));
      }
      call.upload.emplace(std::move(*upload));
    }
    return std::make_unique<ApiExchange>(*match.route, std::move(call));
  }

  Response page_response(const RequestHead& head) {
    if (head.path.starts_with(download_prefix)) return download(head);
    const Asset* asset = find_asset(head.path == "/" ? "index.html" : head.path.substr(1));
    return asset == nullptr ? not_found() : asset_response(*asset, head);
  }

  // The token of the address is the permission: it is used up.
  Response download(const RequestHead& head) {
    std::string_view token(head.path);
    token.remove_prefix(download_prefix.size());
    token = token.substr(0, token.find('/'));
    const auto download = context_.access.take_download(token);
    if (!download) {
      return error_response(refusal("download_token", 403,
                                    "this download address was used already or is too old: start "
                                    "the download again on the page"));
    }
    Response response;
    response.file = metadata::open_at(AT_FDCWD, download->path, O_RDONLY);
    struct stat status {};
    if (!response.file || ::fstat(response.file.get(), &status) != 0) {
      return error_response(metadata::fail_errno(errno, download->name).value());
    }
    response.file_size_bytes = static_cast<std::uint64_t>(status.st_size);
    response.content_type = "application/octet-stream";
    response.headers.emplace_back("Content-Disposition", disposition(download->name));
    return response;
  }

  // RFC 6266: the name in UTF-8, with every byte escaped that is not a letter, digit or ".-_".
  static std::string disposition(const std::string& name) {
    std::string escaped;
    for (const char byte : name) {
      const bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                            (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '-' ||
                            byte == '_';
      escaped += is_plain ? std::string(1, byte)
                          : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
    return "attachment; filename=\"download\"; filename*=UTF-8''" + escaped;
  }

  ServerContext& context_;
  const RouteTable routes_;
};

}  // namespace

std::unique_ptr<HttpHandler> make_router(ServerContext& context) {
  return std::make_unique<Router>(context);
}

}  // namespace nacre::tools::web
