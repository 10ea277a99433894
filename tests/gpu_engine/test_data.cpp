// SPDX-License-Identifier: Apache-2.0
// Seeds, data and damage.
#include "tests/gpu_engine/test_data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "tests/support/source_folder.h"

namespace nacre::engine {
namespace {

std::uint64_t choose_seed() {
  const char* given = std::getenv("NACRE_TEST_SEED");
  return given == nullptr ? std::random_device()() : std::strtoull(given, nullptr, 10);
}

Byte digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<Byte>(c - '0');
  return static_cast<Byte>((c | 0x20) - 'a' + 10);
}

}  // namespace

TestRandom::TestRandom() : seed_(choose_seed()), generator_(seed_) {
  std::cout << "NACRE_TEST_SEED=" << seed_ << "\n";
}

void TestRandom::fill(MutableByteView out) {
  std::generate(out.begin(), out.end(), [this] { return static_cast<Byte>(next()); });
}

Bytes TestRandom::bytes(std::size_t size) {
  Bytes made(size);
  fill(made);
  return made;
}

Bytes make_data(DataKind kind, std::size_t size, TestRandom& random) {
  if (kind == DataKind::zero) return Bytes(size);
  if (kind == DataKind::random) return random.bytes(size);
  static constexpr std::array<std::string_view, 12> words = {
      "the ", "record ", "segment ", "of ",    "a ",      "volume ",
      "is ",  "sealed ", "once ",    "and\n ", "opened ", "again; "};
  Bytes made;
  made.reserve(size + 4096);
  while (made.size() < size) {
    if (kind == DataKind::mixed && random.below(64) == 0) {
      const Bytes part = random.below(2) == 0 ? Bytes(random.below(4096)) : random.bytes(999);
      made.insert(made.end(), part.begin(), part.end());
    } else {
      const std::string_view word = words[random.below(words.size())];
      made.insert(made.end(), word.begin(), word.end());
    }
  }
  made.resize(size);
  return made;
}

void mutate(Bytes& stream, TestRandom& random) {
  const std::size_t edits = 1 + random.below(4);
  for (std::size_t i = 0; i < edits && !stream.empty(); ++i) {
    const std::size_t at = random.below(stream.size());
    switch (random.below(6)) {
      case 0:
        stream[at] = static_cast<Byte>(stream[at] ^ (1u << random.below(8)));
        break;
      case 1:
        stream[at] = static_cast<Byte>(random.next());
        break;
      case 2:
        stream[at] = random.below(2) == 0 ? 0xff : 0x00;
        break;
      case 3:
        stream.resize(at);
        break;
      case 4:
        stream.insert(stream.begin() + static_cast<std::ptrdiff_t>(at), 3, 0xff);
        break;
      default:  // at the front, where sizes and headers are
        stream[at % std::min<std::size_t>(16, stream.size())] = static_cast<Byte>(random.next());
    }
  }
}

Bytes from_hex(std::string_view hex) {
  Bytes bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<Byte>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  return bytes;
}

std::string to_hex(ByteView bytes) {
  std::string hex;
  for (const Byte byte : bytes)
    hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string read_vector(const std::string& name) {
  // The machine that runs the tests may not have the source tree from which they were built.
  const char* const folder = std::getenv("NACRE_VECTORS");
  std::ifstream file(
      (folder != nullptr ? folder : tests::source_folder() + "/tests/vectors") + "/" + name,
      std::ios::binary);
  EXPECT_TRUE(file.good()) << "no file " << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace nacre::engine
