// SPDX-License-Identifier: Apache-2.0
// Histograms, requests that are counted, and Prometheus' text.
#include <cerrno>
#include <cmath>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "fs/control/log_histogram.h"
#include "fs/control/prometheus_text.h"
#include "fs/control/request_metrics.h"

namespace nacre::fs {

namespace {

TEST(LogHistogram, puts_every_value_between_its_buckets_bounds) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> values;
  for (std::uint64_t value = 0; value < 5000; ++value)
    values.push_back(value);
  for (unsigned bit = 0; bit < histogram_value_bits; ++bit) {
    const std::uint64_t power = 1ull << bit;
    values.insert(values.end(), {power - 1, power, power + 1, power + random() % power});
  }
  for (const std::uint64_t value : values) {
    const std::size_t bucket = histogram_bucket_of(value);
    ASSERT_LT(bucket, histogram_bucket_count);
    const std::uint64_t begin = histogram_bucket_begin(bucket);
    const std::uint64_t end = histogram_bucket_begin(bucket + 1);
    EXPECT_LE(begin, value);
    EXPECT_GT(end, value);
    EXPECT_LE((end - begin - 1) * 16, value) << "a bucket wider than a sixteenth, at " << value;
  }
  EXPECT_EQ(histogram_bucket_of(UINT64_MAX), histogram_bucket_count - 1);
}

TEST(LogHistogram, quantiles_are_within_six_percent_of_the_sorted_values) {
  constexpr unsigned seed = 11;
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> latency(10.0, 2.0);
  LogHistogram histogram;
  std::vector<std::uint64_t> values;
  std::uint64_t sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<std::uint64_t>(latency(random)));
    histogram.record(values.back());
    sum += values.back();
  }
  std::sort(values.begin(), values.end());
  const HistogramCounts counts = histogram.counts();
  EXPECT_EQ(counts.count, values.size());
  EXPECT_EQ(counts.sum, sum);
  EXPECT_EQ(counts.max, values.back());
  for (const double share : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto place = static_cast<std::size_t>(
        std::max(1.0, std::ceil(share * static_cast<double>(values.size()))));
    const auto exact = static_cast<double>(values[place - 1]);
    EXPECT_NEAR(static_cast<double>(counts.quantile(share)), exact, 0.06 * exact + 1)
        << "share " << share << ", seed " << seed;
  }
}

TEST(LogHistogram, counts_what_is_below_a_bound_exactly_at_powers_of_two) {
  LogHistogram histogram;
  for (const std::uint64_t value : {0, 15, 16, 31, 32, 4095, 4096, 5000})
    histogram.record(value);
  const HistogramCounts counts = histogram.counts();
  EXPECT_EQ(counts.below(16), 2u);
  EXPECT_EQ(counts.below(32), 4u);
  EXPECT_EQ(counts.below(4096), 6u);
  EXPECT_EQ(counts.below(1u << 20), 8u);
  EXPECT_EQ(HistogramCounts{}.quantile(0.5), 0u);
}

TEST(LogHistogram, loses_no_record_of_many_threads) {
  LogHistogram histogram;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&histogram, thread] {
      for (std::uint64_t i = 0; i < 10'000; ++i)
        histogram.record(thread * 1000 + i % 7);
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(histogram.counts().count, 40'000u);
  EXPECT_EQ(histogram.counts().max, 3006u);
}

RequestMark mark(std::uint64_t unique, std::uint32_t operation) {
  return {unique, operation, std::chrono::steady_clock::now()};
}
std::string name_of(std::uint32_t operation) {
  return operation == 9 ? "" : "op" + std::to_string(operation);
}

TEST(RequestMetrics, counts_an_answer_once_and_only_the_request_of_its_thread) {
  RequestMetrics metrics;
  {
    const RequestScope scope(mark(2, 3));
    metrics.answered(4, 0);  // a request of another thread
    metrics.answered(0, 0);  // a notification
    metrics.answered(2, ENOENT);
  }
  metrics.answered(2, 0);  // its scope has ended
  const RequestStats stats = metrics.stats(name_of);
  ASSERT_EQ(stats.operations.size(), 1u);
  EXPECT_EQ(stats.operations[0].name, "op3");
  EXPECT_EQ(stats.operations[0].latency_ns.count, 1u);
  EXPECT_EQ(stats.operations[0].error_count, 1u);
  ASSERT_EQ(stats.errors.size(), 1u);
  EXPECT_EQ(stats.errors[0], (std::pair<std::string, std::uint64_t>("ENOENT", 1)));
}

TEST(RequestMetrics, a_mark_may_be_answered_on_another_thread) {
  RequestMetrics metrics;
  RequestMark taken;
  {
    const RequestScope outer(mark(2, 1));
    {
      const RequestScope scope(mark(8, 5));
      taken = RequestScope::current();
    }
    EXPECT_EQ(RequestScope::current().unique, 2u);
  }
  std::thread([&] {
    const RequestScope scope(taken);
    metrics.answered(8, 0);
  }).join();
  const RequestStats stats = metrics.stats(name_of);
  ASSERT_EQ(stats.operations.size(), 1u);
  EXPECT_EQ(stats.operations[0].name, "op5");
}

TEST(RequestMetrics, enosys_is_no_error_and_what_has_no_name_is_left_out) {
  RequestMetrics metrics;
  const RequestScope scope(mark(2, 14));
  metrics.answered(2, ENOSYS);
  metrics.finished(mark(6, 9));
  metrics.finished(mark(8, 1'000'000));
  const RequestStats stats = metrics.stats(name_of);
  ASSERT_EQ(stats.operations.size(), 1u);
  EXPECT_EQ(stats.operations[0].error_count, 0u);
  EXPECT_TRUE(stats.errors.empty());
}

TEST(PrometheusText, writes_what_the_format_wants) {
  PrometheusText text;
  text.counter("nacre_x_total", "Things.", 18446744073709551615u);
  text.begin("nacre_y", "gauge", "Other things.");
  text.sample({{"a", "b\"\\\n"}, {"c", ""}}, 0.25);
  text.begin("nacre_z", "histogram", "Times.");
  text.histogram({{"op", "read"}}, {{0.5, 1}, {1e-6, 2}}, 3, 4.5);
  EXPECT_EQ(text.take(),
            "# HELP nacre_x_total Things.\n# TYPE nacre_x_total counter\n"
            "nacre_x_total 18446744073709551615\n"
            "# HELP nacre_y Other things.\n# TYPE nacre_y gauge\n"
            "nacre_y{a=\"b\\\"\\\\\\n\",c=\"\"} 0.25\n"
            "# HELP nacre_z Times.\n# TYPE nacre_z histogram\n"
            "nacre_z_bucket{op=\"read\",le=\"0.5\"} 1\n"
            "nacre_z_bucket{op=\"read\",le=\"1e-06\"} 2\n"
            "nacre_z_bucket{op=\"read\",le=\"+Inf\"} 3\n"
            "nacre_z_sum{op=\"read\"} 4.5\nnacre_z_count{op=\"read\"} 3\n");
}

}  // namespace

}  // namespace nacre::fs
