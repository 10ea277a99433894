// SPDX-License-Identifier: Apache-2.0
#include "fs/control/prometheus_text.h"

#include <fmt/format.h>

namespace nacre::fs {

namespace {

// Escapes the value of a label. Help texts have no quotation marks, so they do not need it.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') result += '\\';
    if (letter == '\n') {
      result += "\\n";
    } else {
      result += letter;
    }
  }
  return result;
}

}  // namespace

void PrometheusText::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void PrometheusText::write(std::string_view suffix, Labels labels,
                           std::pair<std::string_view, std::string_view> last,
                           std::string_view value) {
  std::string list;
  const auto add = [&list](std::string_view name, std::string_view text) {
    list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", name, escaped(text));
  };
  for (const auto& [name, text] : labels)
    add(name, text);
  if (!last.first.empty()) add(last.first, last.second);
  text_ += fmt::format("{}{}{}{}{} {}\n", name_, suffix, list.empty() ? "" : "{", list,
                       list.empty() ? "" : "}", value);
}

void PrometheusText::sample(Labels labels, std::uint64_t value) {
  write("", labels, {}, fmt::format("{}", value));
}

void PrometheusText::sample(Labels labels, double value) {
  write("", labels, {}, fmt::format("{}", value));
}

void PrometheusText::counter(std::string_view name, std::string_view help, std::uint64_t value) {
  begin(name, "counter", help);
  sample({}, value);
}

void PrometheusText::gauge(std::string_view name, std::string_view help, std::uint64_t value) {
  begin(name, "gauge", help);
  sample({}, value);
}

void PrometheusText::gauge(std::string_view name, std::string_view help, double value) {
  begin(name, "gauge", help);
  sample({}, value);
}

void PrometheusText::histogram(Labels labels, const std::vector<Bucket>& buckets,
                               std::uint64_t count, double sum) {
  for (const Bucket& bucket : buckets) {
    write("_bucket", labels, {"le", fmt::format("{}", bucket.bound)},
          fmt::format("{}", bucket.count));
  }
  write("_bucket", labels, {"le", "+Inf"}, fmt::format("{}", count));
  write("_sum", labels, {}, fmt::format("{}", sum));
  write("_count", labels, {}, fmt::format("{}", count));
}

}  // namespace nacre::fs
