// SPDX-License-Identifier: Apache-2.0
// How much of a sweep runs: all of it with NACRE_LONG set, else a sample that differs from run to
// run. NACRE_SEED=n repeats one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace nacre::tests {

class Sample {
 public:
  Sample()
      : is_long_(std::getenv("NACRE_LONG") != nullptr),
        seed_(std::getenv("NACRE_SEED") ? std::strtoull(std::getenv("NACRE_SEED"), nullptr, 10)
                                        : std::random_device{}()),
        random_(seed_) {}

  std::uint64_t seed() const { return seed_; }
  bool is_long() const { return is_long_; }
  std::uint64_t next() { return random_(); }
  // The distance between the points to try, so that about `tried` of `count` points are tried.
  std::uint64_t stride(std::uint64_t count, std::uint64_t tried) const {
    return is_long_ ? 1 : std::max<std::uint64_t>(1, count / std::max<std::uint64_t>(1, tried));
  }
  void print(std::uint64_t tried, std::uint64_t count, std::string_view what) const {
    std::cout << "seed " << seed_ << ": " << tried << " states, at " << what << " of " << count
              << '\n';
  }

 private:
  const bool is_long_;
  const std::uint64_t seed_;
  std::mt19937_64 random_;
};

}  // namespace nacre::tests
