// SPDX-License-Identifier: Apache-2.0
// Tokens of pages, and secrets on their way. API.md, "Session" and "Rules for every request".
#include <pwd.h>
#include <unistd.h>

#include "gpu_engine/base/printable.h"
#include "metadata/text/text_bytes.h"
#include "tools/cli/terminal.h"
#include "tools/web/fields.h"
#include "tools/web/path_text.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

constexpr std::size_t nonce_size_bytes_min = 16;
constexpr std::size_t nonce_size_bytes_max = 64;

std::string user_name() {
  std::string room(16u << 10, '\0');
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found);
  return error == 0 && found != nullptr ? entry.pw_name : std::to_string(::geteuid());
}

nlohmann::json session_json(const ServerContext& context) {
  return {{"version", NACRE_VERSION},
          {"user", printable(user_name())},
          {"home", to_path_text(home_folder())},
          {"idle_minutes", context.idle_minutes}};
}

Answer begin_session(ServerContext& context, const Call& call) {
  NACRE_ASSIGN(const auto one_time, Fields(call.body).text("token"));
  const auto begun = context.access.exchange(one_time);
  if (!begun) {
    return tl::unexpected(refusal("one_time_token", 401,
                                  "this address was used already: run nacre web again, or "
                                  "open a second page from the first one"));
  }
  nlohmann::json answer = session_json(context);
  answer["token"] = begun->bearer;
  answer["session"] = begun->id;
  answer["proof_key"] = hex(begun->proof_key.view());
  return json_response(answer);
}

// Shows a page that this is the server that began its session, before the page sends its token.
Answer prove(ServerContext& context, const Call& call) {
  const std::string text = call.head.query_value("nonce");
  Bytes nonce(text.size() / 2);
  if (nonce.size() < nonce_size_bytes_min || nonce.size() > nonce_size_bytes_max ||
      !metadata::from_hex(text, nonce)) {
    return tl::unexpected(WebError(
        Error{ErrorCode::invalid_argument, "a nonce is 16 to 64 bytes in hexadecimal digits"}));
  }
  const auto proof = context.access.prove(call.head.query_value("session"), nonce);
  if (!proof) {
    return tl::unexpected(
        refusal("session", 401, "open the page with the address that nacre web printed"));
  }
  return json_response({{"proof", *proof}});
}

Answer keep_secret(ServerContext& context, Call& call) {
  if (call.secret.empty()) {
    return tl::unexpected(WebError(
        Error{ErrorCode::invalid_argument, "the passphrase is empty: give one that is not"}));
  }
  return json_response({{"secret", context.access.add_secret(std::move(call.secret))}});
}

Answer keep_sealed_secret(ServerContext& context, Call& call) {
  auto secret = context.access.unseal(call.head.authorization.value_or(""), call.secret.view());
  if (!secret) return tl::unexpected(WebError(secret.error()));
  call.secret = std::move(*secret);
  return keep_secret(context, call);
}

Answer show_secret(ServerContext& context, const Call& call) {
  auto secret = context.access.take_made_secret(call.words.front());
  if (!secret) {
    WebError error(secret.error());
    error.check = "secret_id";
    return tl::unexpected(error);
  }
  Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.secret = std::make_shared<SecretBytes>(std::move(*secret));
  return response;
}

}  // namespace

void add_session_routes(RouteTable& routes, ServerContext& context) {
  routes.add({.method = "POST",
              .pattern = "/api/session",
              .body = BodyKind::json,
              .needs_token = false,
              .answer = [&](Call& call) { return begin_session(context, call); }});
  routes.add({.method = "GET",
              .pattern = "/api/session/proof",
              .needs_token = false,
              .answer = [&](Call& call) { return prove(context, call); }});
  routes.get("/api/session", [&](Call&) -> Answer { return json_response(session_json(context)); });
  routes.remove("/api/session", [&](Call& call) -> Answer {
    context.access.forget_bearer(call.head.authorization.value_or(""));
    return json_response(nlohmann::json::object());
  });
  routes.post("/api/session/link", [&](Call&) -> Answer {
    const std::string token = context.access.make_one_time_token();
    return json_response({{"url", context.page_address + "#token=" + token}});
  });
  routes.post("/api/alive",
              [](Call&) -> Answer { return json_response(nlohmann::json::object()); });
  routes.add({.method = "POST",
              .pattern = "/api/secrets",
              .body = BodyKind::secret,
              .answer = [&](Call& call) { return keep_secret(context, call); }});
  routes.add({.method = "POST",
              .pattern = "/api/secrets/sealed",
              .body = BodyKind::secret,
              .answer = [&](Call& call) { return keep_sealed_secret(context, call); }});
  routes.get("/api/secrets/*", [&](Call& call) { return show_secret(context, call); });
}

}  // namespace nacre::tools::web
