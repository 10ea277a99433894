// SPDX-License-Identifier: Apache-2.0
// Prometheus' text exposition format, version 0.0.4: families of samples, each with its help and
// type. https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/control/log_histogram.h"

namespace nacre::fs {

// Collects one page of metrics. Not thread-safe.
class PrometheusText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Begins a family; its samples follow. Names, types ("counter", "gauge", "histogram") and help
  // texts are constants of the caller: they are not checked, and help has no backslash or newline.
  // Values of labels are any text and are escaped.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void sample(Labels labels, std::uint64_t value);
  void sample(Labels labels, double value);
  // Write a family with one sample.
  void counter(std::string_view name, std::string_view help, std::uint64_t value);
  void gauge(std::string_view name, std::string_view help, std::uint64_t value);
  void gauge(std::string_view name, std::string_view help, double value);

  // Writes one histogram of a family: for each bound, in rising order, the number of values that
  // are not above it, and then the number of all values.
  struct Bucket {
    double bound;
    std::uint64_t count;
  };
  void histogram(Labels labels, const std::vector<Bucket>& buckets, std::uint64_t count,
                 double sum);

  // The whole page. Called once, at the end.
  std::string take() { return std::move(text_); }

 private:
  void write(std::string_view suffix, Labels labels,
             std::pair<std::string_view, std::string_view> last, std::string_view value);

  std::string text_;
  std::string name_;
};

}  // namespace nacre::fs
