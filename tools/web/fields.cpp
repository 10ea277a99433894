// SPDX-License-Identifier: Apache-2.0
#include "tools/web/fields.h"

#include <fmt/format.h>

#include "tools/web/path_text.h"

namespace nacre::tools::web {

namespace {

constexpr std::size_t list_size_max = 10000;

tl::unexpected<Error> wrong(const char* name, const char* what) {
  return fail(ErrorCode::invalid_argument, fmt::format("the field \"{}\" {}", name, what));
}

}  // namespace

bool Fields::has(const char* name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

Result<std::string> Fields::text(const char* name) const {
  if (!has(name)) return wrong(name, "is missing");
  const auto& value = object_.at(name);
  if (!value.is_string()) return wrong(name, "must be a text");
  auto text = value.get<std::string>();
  if (text.find('\0') != std::string::npos) return wrong(name, "has a NUL");
  return text;
}

Result<std::string> Fields::text_or(const char* name, std::string fallback) const {
  return has(name) ? text(name) : Result<std::string>(std::move(fallback));
}

Result<bool> Fields::flag(const char* name) const {
  if (!has(name)) return false;
  const auto& value = object_.at(name);
  if (!value.is_boolean()) return wrong(name, "must be true or false");
  return value.get<bool>();
}

Result<std::uint64_t> Fields::number_or(const char* name, std::uint64_t fallback, std::uint64_t min,
                                        std::uint64_t max) const {
  if (!has(name)) return fallback;
  const auto& value = object_.at(name);
  if (!value.is_number_unsigned()) return wrong(name, "must be a whole number");
  const auto number = value.get<std::uint64_t>();
  if (number < min || number > max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the field \"{}\" must be from {} to {}", name, min, max));
  }
  return number;
}

Result<std::vector<std::string>> Fields::texts(const char* name) const {
  std::vector<std::string> texts;
  if (!has(name)) return texts;
  const auto& list = object_.at(name);
  if (!list.is_array() || list.size() > list_size_max) return wrong(name, "must be a list");
  for (const auto& value : list) {
    if (!value.is_string()) return wrong(name, "must be a list of texts");
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

Result<std::string> Fields::path(const char* name) const {
  NACRE_ASSIGN(const auto given, text(name));
  auto found = request_path(given);
  if (!found) return add_context(found.error(), name);
  return found;
}

Result<std::string> Fields::path_or_empty(const char* name) const {
  return has(name) ? path(name) : Result<std::string>(std::string());
}

Result<std::vector<std::string>> Fields::paths(const char* name) const {
  NACRE_ASSIGN(const auto given, texts(name));
  std::vector<std::string> paths;
  for (const std::string& one : given) {
    NACRE_ASSIGN(auto path, request_path(one));
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace nacre::tools::web
