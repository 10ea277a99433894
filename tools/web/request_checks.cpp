// SPDX-License-Identifier: Apache-2.0
#include "tools/web/request_checks.h"

#include <algorithm>

#include <fmt/format.h>

namespace nacre::tools::web {

namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_loopback_with_port(std::string_view host) {
  for (const std::string_view address : {"127.0.0.1:", "[::1]:"}) {
    if (host.starts_with(address)) return is_port(host.substr(address.size()));
  }
  return false;
}

// Sec-Fetch-Site: a script of the page is "same-origin". An address that the user opens is "none";
// a link on another page is "cross-site", and then only the bare page may be shown.
bool is_own_site(const RequestHead& head, bool is_page) {
  if (!head.fetch_site || *head.fetch_site == "same-origin") return true;
  if (!is_page) return false;
  const bool opens_page = head.fetch_mode == "navigate" && head.fetch_dest == "document";
  return *head.fetch_site == "none" || opens_page;
}

}  // namespace

bool is_own_host(const RequestRules& rules, const std::string& host) {
  if (rules.hosts.empty()) return is_loopback_with_port(host);
  return std::find(rules.hosts.begin(), rules.hosts.end(), host) != rules.hosts.end();
}

std::optional<WebError> check_request(const RequestRules& rules, const RequestHead& head,
                                      bool is_page) {
  if (head.peer_user != rules.user) {
    return refusal("peer_user", 403, "this connection does not belong to the user of this server");
  }
  if (!head.host || !is_own_host(rules, *head.host)) {
    return refusal("host", 403,
                   "this server has another address: use the one that nacre web printed");
  }
  if (head.upgrade) return refusal("upgrade", 403, "this server has no WebSockets");
  if (head.fetch_dest == "iframe" || head.fetch_dest == "frame" || head.fetch_dest == "object" ||
      head.fetch_dest == "embed") {
    return refusal("frame", 403, "this page cannot be shown within another page");
  }
  const bool is_get = head.method == "GET" || head.method == "HEAD";
  const bool wants_origin = !is_page && !is_get;
  if ((head.origin || wants_origin) && head.origin != "http://" + *head.host) {
    return refusal("origin", 403, "another page made this request");
  }
  if (!is_own_site(head, is_page)) {
    return refusal("fetch_site", 403, "a page of another site made this request");
  }
  return std::nullopt;
}

}  // namespace nacre::tools::web
