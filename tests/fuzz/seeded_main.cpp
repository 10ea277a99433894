// SPDX-License-Identifier: Apache-2.0
// Runs a harness without libFuzzer: first the inputs that were once found, then seeded ones:
// sound ones (NACRE_FUZZ_MAKER) that are damaged in a few places, and bare bytes.
//
// NACRE_TEST_SEED repeats a run, NACRE_LONG makes it two hundred times longer. NACRE_FUZZ_INPUTS
// names a folder that gets some sound inputs instead: what libFuzzer begins with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpu_engine/codec/codec.h"
#include "gpu_engine/codec/gdeflate/encoder.h"
#include "tests/fuzz/decoder_input.h"
#include "tests/fuzz/entry.h"
#ifdef NACRE_FUZZ_FORMATS
#include "tests/fuzz/format_inputs.h"
#endif
#include "tests/gpu_engine/test_data.h"
#include "tests/support/source_folder.h"

namespace nacre::engine {
namespace {

Bytes make_plain(TestRandom& random) {
  const std::size_t size = random.below(random.below(50) == 0 ? plain_size_max : 3000);
  return make_data(data_kinds[random.below(data_kinds.size())], size, random);
}

[[maybe_unused]] Bytes with_plain_size(std::size_t plain_size, Bytes stream) {
  stream.insert(stream.begin(), sizeof(std::uint32_t), Byte{0});
  store_le(stream.data(), static_cast<std::uint32_t>(plain_size));
  return stream;
}

[[maybe_unused]] Bytes make_stream(Codec codec, TestRandom& random) {
  const Bytes plain = make_plain(random);
  Bytes stream(stream_size_bound(codec, plain.size()));
  const int level = static_cast<int>(random.below(8));
  stream.resize(compress(codec, level, plain, stream).value());
  return with_plain_size(plain.size(), std::move(stream));
}

[[maybe_unused]] Bytes make_page(TestRandom& random) {
  Bytes plain = make_plain(random);
  plain.resize(std::min<std::size_t>(plain.size(), 65536));
  Bytes page(plain.size());
  const int level = 1 + static_cast<int>(random.below(8));
  page.resize(gdeflate::encode_page(level, plain, page));
  return with_plain_size(plain.size(), std::move(page));
}

[[maybe_unused]] Bytes make_leveled_plain(TestRandom& random) {
  Bytes input = make_plain(random);
  input.insert(input.begin(), static_cast<Byte>(random.next()));
  return input;
}

// Copies, so that what reads past the end reads past an allocation.
void try_input(ByteView bytes) {
  const Bytes exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

int try_finds(const std::string& folder) {
  int count = 0;
  if (!std::filesystem::is_directory(folder)) return 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    try_input(Bytes(std::istreambuf_iterator<char>(file), {}));
    ++count;
  }
  return count;
}

void save(const Bytes& input, const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(input.data()),
             static_cast<std::streamsize>(input.size()));
}

TEST(Fuzz, NACRE_FUZZ_NAME) {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  TestRandom random;
  if (const char* folder = std::getenv("NACRE_FUZZ_INPUTS")) {
    for (int i = 0; i < 200; ++i)
      save(NACRE_FUZZ_MAKER, std::filesystem::path(folder) / fmt::format("made{}", i));
    return;
  }
  const int finds = try_finds(fmt::format("{}/tests/fuzz/finds/{}", tests::source_folder(), name));
  const int rounds = std::getenv("NACRE_LONG") == nullptr ? 10000 : 2000000;
  for (int round = 0; round < rounds; ++round) {
    Bytes input = NACRE_FUZZ_MAKER;
    if (round % 16 == 0) input = random.bytes(random.below(600));
    if (round % 8 != 0) mutate(input, random);
    try_input(input);
  }
  fmt::print("{} inputs found before, {} seeded ones\n", finds, rounds);
}

}  // namespace
}  // namespace nacre::engine
