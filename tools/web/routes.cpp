// SPDX-License-Identifier: Apache-2.0
#include "tools/web/routes.h"

#include <algorithm>

namespace nacre::tools::web {

namespace {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> words;
  while (true) {
    const auto slash = path.find('/');
    words.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return words;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

void RouteTable::get(std::string pattern, MakeAnswer answer) {
  add({.method = "GET", .pattern = std::move(pattern), .answer = std::move(answer)});
}

void RouteTable::remove(std::string pattern, MakeAnswer answer) {
  add({.method = "DELETE", .pattern = std::move(pattern), .answer = std::move(answer)});
}

void RouteTable::post(std::string pattern, MakeAnswer answer) {
  add({.method = "POST",
       .pattern = std::move(pattern),
       .body = BodyKind::json,
       .answer = std::move(answer)});
}

RouteTable::Match RouteTable::find(std::string_view method, std::string_view path) const {
  Match match;
  const auto words = split_path(path);
  for (const Route& route : routes_) {
    const auto parts = split_path(route.pattern);
    std::vector<std::string> found;
    bool fits = parts.size() == words.size();
    for (std::size_t i = 0; fits && i < parts.size(); ++i) {
      if (parts[i] == "*" && !words[i].empty()) {
        found.push_back(words[i]);
      } else {
        fits = parts[i] == words[i];
      }
    }
    if (!fits) continue;
    match.is_known_path = true;
    if (route.method != method) continue;
    match.route = &route;
    match.words = std::move(found);
    return match;
  }
  return match;
}

RouteTable all_routes(ServerContext& context) {
  RouteTable routes;
  add_session_routes(routes, context);
  add_engine_routes(routes, context);
  add_job_routes(routes, context);
  add_file_routes(routes, context);
  add_crypt_routes(routes, context);
  add_compare_routes(routes, context);
  add_key_routes(routes, context);
  add_volume_routes(routes, context);
  add_volume_key_routes(routes, context);
  add_volume_care_routes(routes, context);
  add_login_routes(routes, context);
  add_live_routes(routes, context);
  return routes;
}

Answer job_answer(const tl::expected<std::shared_ptr<Job>, WebError>& job) {
  if (!job) return tl::unexpected(job.error());
  return json_response({{"job", (*job)->to_json()}, {"command", (*job)->command()}}, 202);
}

}  // namespace nacre::tools::web
