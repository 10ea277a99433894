// SPDX-License-Identifier: Apache-2.0
#include "metadata/text/exact_bytes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gpu_engine/base/bytes.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

namespace {

using nlohmann::json;

std::string exact_name(const std::string& name) {
  return name + "_base64";
}

std::string as_shown(std::string_view bytes) {
  const std::string text = to_json_line(json(std::string(bytes)));
  return json::parse(text).get<std::string>();
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  return as_shown(bytes) == bytes;
}

void put_bytes(json& object, const std::string& name, std::string_view bytes) {
  object[name] = as_shown(bytes);
  if (object[name] != bytes) object[exact_name(name)] = to_base64(as_bytes(bytes));
}

void put_bytes(json& object, const std::string& name, const std::vector<std::string>& list) {
  json& shown = object[name] = json::array();
  for (const std::string& bytes : list)
    shown.push_back(as_shown(bytes));
  if (std::all_of(list.begin(), list.end(), [](const auto& bytes) { return is_utf8(bytes); })) {
    return;
  }
  json& exact = object[exact_name(name)] = json::array();
  for (const std::string& bytes : list)
    exact.push_back(to_base64(as_bytes(bytes)));
}

std::optional<std::string> get_bytes(const json& object, const std::string& name) {
  if (!object.is_object()) return std::nullopt;
  if (const auto exact = object.find(exact_name(name)); exact != object.end()) {
    if (!exact->is_string()) return std::nullopt;
    const auto bytes = from_base64(exact->get_ref<const std::string&>());
    if (!bytes) return std::nullopt;
    return std::string(as_text(*bytes));
  }
  const auto text = object.find(name);
  if (text == object.end() || !text->is_string()) return std::nullopt;
  return text->get<std::string>();
}

std::string to_json_line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace nacre::metadata
