// SPDX-License-Identifier: Apache-2.0
// The last minutes of a mounted volume. API.md, "Live".
#include <cmath>
#include <cstdlib>

#include "tools/web/path_text.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

void add_live_routes(RouteTable& routes, ServerContext& context) {
  routes.get("/api/live", [&](Call& call) -> Answer {
    NACRE_ASSIGN(const auto mountpoint, request_path(call.head.query_value("mountpoint")));
    const double since = std::strtod(call.head.query_value("since").c_str(), nullptr);
    const std::uint64_t log_after =
        std::strtoull(call.head.query_value("log_after").c_str(), nullptr, 10);
    auto answer = context.live.poll(mountpoint, std::isfinite(since) ? since : 0, log_after);
    if (!answer) {
      WebError error(answer.error());
      error.where = mountpoint;
      error.command = "nacre stats " + shell_quote(mountpoint);
      return tl::unexpected(error);
    }
    return json_response(*answer);
  });
}

}  // namespace nacre::tools::web
