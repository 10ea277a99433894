// SPDX-License-Identifier: Apache-2.0
// Inputs for the engine's tests: sizes at every edge, kinds of data, seeded randomness.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

inline constexpr std::array<std::size_t, 18> edge_sizes = {
    0,    1,    7,    31,    32,    33,    4095,   4096,   4097,
    8191, 8192, 8193, 65535, 65536, 65537, 131072, 196609, 1u << 20};

enum class DataKind { zero, random, text, mixed };
inline constexpr std::array<DataKind, 4> data_kinds = {DataKind::zero, DataKind::random,
                                                       DataKind::text, DataKind::mixed};

// Prints its seed. NACRE_TEST_SEED repeats a run.
class TestRandom {
 public:
  TestRandom();
  std::uint64_t seed() const { return seed_; }
  std::uint64_t next() { return generator_(); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  void fill(MutableByteView out);
  Bytes bytes(std::size_t size);

 private:
  std::uint64_t seed_;
  std::mt19937_64 generator_;
};

// text: words of a small vocabulary; mixed: stretches of the other kinds.
Bytes make_data(DataKind kind, std::size_t size, TestRandom& random);

// Damages a stream in one to four places: bits, bytes, cuts, insertions.
void mutate(Bytes& stream, TestRandom& random);

Bytes from_hex(std::string_view hex);
std::string to_hex(ByteView bytes);

// A file of tests/vectors.
std::string read_vector(const std::string& name);

}  // namespace nacre::engine
