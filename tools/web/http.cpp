// SPDX-License-Identifier: Apache-2.0
#include "tools/web/http.h"

#include <nlohmann/json.hpp>

namespace nacre::tools::web {

std::string RequestHead::query_value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

Response json_response(const nlohmann::json& value, unsigned status) {
  Response response;
  response.status = status;
  response.body = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

Response error_response(const WebError& error) {
  return json_response({{"error", to_json(error)}}, error.status);
}

}  // namespace nacre::tools::web
