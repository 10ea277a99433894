// SPDX-License-Identifier: Apache-2.0
// The checks that each request passes before anything else looks at it. They keep out other users
// of this machine, and pages of other origins in the user's own browser. API.md has the list.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/web/http.h"

namespace nacre::tools::web {

struct RequestRules {
  uid_t user = 0;  // whose processes may connect
  // The values that Host may have: "127.0.0.1:PORT", "[::1]:PORT". Empty for a Unix socket: then
  // any port of the two addresses may stand there, because ssh chooses it.
  std::vector<std::string> hosts;
};

// Whether Host names the server by one of its addresses, and not by a name that another machine
// could have in the DNS.
bool is_own_host(const RequestRules& rules, const std::string& host);

// The refusal of the first check that fails. is_page: an asset or a download, which a browser also
// gets by navigation; everything else comes from a script of the page.
std::optional<WebError> check_request(const RequestRules& rules, const RequestHead& head,
                                      bool is_page);

}  // namespace nacre::tools::web
