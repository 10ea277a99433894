// SPDX-License-Identifier: Apache-2.0
// The table of addresses: which method and body each takes, and what answers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/web/http.h"
#include "tools/web/server_context.h"

namespace nacre::tools::web {

inline constexpr std::size_t json_size_bytes_max = 64u << 10;

enum class BodyKind : std::uint8_t { none, json, secret, upload };

// One request that passed the checks, with its body.
struct Call {
  RequestHead head;
  std::vector<std::string> words;  // the parts of the address for which its pattern has "*"
  nlohmann::json body;             // an object, for BodyKind::json
  SecretBytes secret;              // for BodyKind::secret
  std::optional<UploadFile> upload;
};
using MakeAnswer = std::function<Answer(Call& call)>;

struct Route {
  std::string method;
  std::string pattern;  // "/api/jobs/*/cancel"
  BodyKind body = BodyKind::none;
  bool needs_token = true;
  MakeAnswer answer;
};

class RouteTable {
 public:
  void get(std::string pattern, MakeAnswer answer);
  void remove(std::string pattern, MakeAnswer answer);  // DELETE
  void post(std::string pattern, MakeAnswer answer);    // with a JSON body
  void add(Route route) { routes_.push_back(std::move(route)); }

  struct Match {
    const Route* route = nullptr;
    std::vector<std::string> words;
    bool is_known_path = false;  // another method is served there
  };
  Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

// Each adds the addresses of one section of API.md. context outlives the table.
void add_session_routes(RouteTable& routes, ServerContext& context);
void add_engine_routes(RouteTable& routes, ServerContext& context);
void add_job_routes(RouteTable& routes, ServerContext& context);
void add_file_routes(RouteTable& routes, ServerContext& context);
void add_crypt_routes(RouteTable& routes, ServerContext& context);
void add_compare_routes(RouteTable& routes, ServerContext& context);
void add_key_routes(RouteTable& routes, ServerContext& context);
void add_volume_routes(RouteTable& routes, ServerContext& context);
void add_volume_key_routes(RouteTable& routes, ServerContext& context);
void add_volume_care_routes(RouteTable& routes, ServerContext& context);
void add_login_routes(RouteTable& routes, ServerContext& context);
void add_live_routes(RouteTable& routes, ServerContext& context);
RouteTable all_routes(ServerContext& context);

// {"job":…, "command":…}, status 202.
Answer job_answer(const tl::expected<std::shared_ptr<Job>, WebError>& job);

// Assets, downloads and everything below /api/.
std::unique_ptr<HttpHandler> make_router(ServerContext& context);

}  // namespace nacre::tools::web
