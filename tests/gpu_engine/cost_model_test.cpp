// SPDX-License-Identifier: Apache-2.0
// How work is dealt out between two backends of known cost, and the file that keeps the costs.
#include "gpu_engine/cost_model.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

namespace nacre::engine {
namespace {

constexpr double megabyte = 1 << 20;

// A backend that needs latency, then so many nanoseconds a byte.
CostModel::Costs linear(double latency_ns, double ns_per_byte) {
  CostModel::Costs costs;
  for (auto& of_class : costs) {
    for (std::size_t i = 0; i < CostModel::size_count; ++i)
      of_class[i] = latency_ns + ns_per_byte * static_cast<double>(CostModel::sizes[i]);
  }
  return costs;
}

const std::bitset<work_class_count> all_split = std::bitset<work_class_count>().set();

TEST(CostModel, interpolates_and_goes_on_as_it_ended) {
  const CostModel model(linear(0, 1), linear(3e6, 0.1), all_split);
  for (const double size : {2 * megabyte, 10 * megabyte, 1000 * megabyte}) {
    EXPECT_NEAR(model.cpu_ns(WorkClass::unseal, size), size, size / 100);
    EXPECT_NEAR(model.cuda_ns(WorkClass::unseal, size), 3e6 + size / 10, size / 100);
  }
  EXPECT_EQ(model.cpu_ns(WorkClass::unseal, 0), 0);
}

TEST(CostModel, gives_small_work_to_the_cpu_and_large_work_to_both) {
  const CostModel model(linear(0, 1), linear(3e6, 0.1), all_split);
  EXPECT_EQ(model.cuda_share(WorkClass::seal_coded, 1 << 20, 1, 0, 0), 0u);
  EXPECT_EQ(model.cuda_share(WorkClass::seal_coded, 64 << 10, 1, 0, 0), 0u);
  // Both end together when the devices have ten parts of eleven.
  const std::uint64_t share = model.cuda_share(WorkClass::seal_coded, 1u << 30, 1, 0, 0);
  EXPECT_NEAR(static_cast<double>(share), (1u << 30) * 10.0 / 11.0, (1u << 30) / 16.0);
}

TEST(CostModel, never_ends_much_later_than_the_better_backend_alone) {
  for (const double cuda_ns : {0.01, 0.3, 1.0, 3.0, 50.0}) {
    const CostModel model(linear(0, 1), linear(2e6, cuda_ns), all_split);
    for (std::uint64_t size = 1 << 20; size < 4ull << 30; size = size * 3 / 2) {
      const auto bytes = static_cast<double>(size);
      const auto share = static_cast<double>(model.cuda_share(WorkClass::crypt, size, 1, 0, 0));
      const double planned = std::max(model.cpu_ns(WorkClass::crypt, bytes - share),
                                      share > 0 ? model.cuda_ns(WorkClass::crypt, share) : 0);
      const double alone =
          std::min(model.cpu_ns(WorkClass::crypt, bytes), model.cuda_ns(WorkClass::crypt, bytes));
      EXPECT_LE(planned, alone * 1.04) << size << " bytes at " << cuda_ns;
    }
  }
}

TEST(CostModel, takes_one_backend_where_two_gain_nothing) {
  const CostModel model(linear(0, 1), linear(3e6, 0.9), {});
  for (std::uint64_t size = 1 << 20; size < 4ull << 30; size *= 2) {
    const std::uint64_t share = model.cuda_share(WorkClass::unseal, size, 1, 0, 0);
    EXPECT_TRUE(share == 0 || share == size);
  }
  EXPECT_EQ(model.cuda_share(WorkClass::unseal, 1u << 30, 1, 0, 0), 1u << 30);
}

TEST(CostModel, sends_work_away_from_a_backend_that_is_busy) {
  const CostModel model(linear(0, 1), linear(3e6, 0.9), all_split);
  const std::uint64_t size = 16u << 20;
  const std::uint64_t idle = model.cuda_share(WorkClass::seal_coded, size, 1, 0, 0);
  EXPECT_GT(model.cuda_share(WorkClass::seal_coded, size, 1, 1e9, 0), idle);
  EXPECT_EQ(model.cuda_share(WorkClass::seal_coded, size, 1, 1e9, 0), size);
  EXPECT_EQ(model.cuda_share(WorkClass::seal_coded, size, 1, 0, 1e9), 0u);
}

TEST(CostModel, gives_less_to_devices_of_which_some_are_lost) {
  const CostModel model(linear(0, 1), linear(3e6, 0.4), all_split);
  const std::uint64_t size = 1u << 30;
  std::uint64_t before = size;
  for (const double load : {1.0, 2.0, 4.0}) {
    const std::uint64_t share = model.cuda_share(WorkClass::seal_coded, size, load, 0, 0);
    // Both end together.
    EXPECT_NEAR(static_cast<double>(share), size / (1 + 0.4 * load), size / 16.0) << load;
    EXPECT_LT(share, before) << load;
    before = share;
  }
}

TEST(CostModel, is_kept_in_a_file_of_one_machine) {
  const tests::TemporaryDirectory directory;
  const std::string file = directory.path() + "/cache/nacre/engine-costs";
  EXPECT_FALSE(CostModel::read(file, "a"));
  const CostModel model(linear(100, 1), linear(3e6, 0.1), all_split);
  model.write(file, "a");
  const auto read = CostModel::read(file, "a");
  ASSERT_TRUE(read);
  EXPECT_NEAR(read->cuda_ns(WorkClass::reseal, 7 * megabyte),
              model.cuda_ns(WorkClass::reseal, 7 * megabyte), 2);
  EXPECT_FALSE(CostModel::read(file, "b"));
  std::ofstream(file) << "nacre-engine-costs 1 a\n1 2 x\n";
  EXPECT_FALSE(CostModel::read(file, "a"));
}

}  // namespace
}  // namespace nacre::engine
