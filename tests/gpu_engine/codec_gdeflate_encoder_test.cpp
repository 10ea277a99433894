// SPDX-License-Identifier: Apache-2.0
// The encoder of GDeflate pages: what it writes, its own decoder reads back, fast and plainly, at
// every level, for sizes at every edge and data made to hurt it.
#include "gpu_engine/codec/gdeflate/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "gpu_engine/codec/gdeflate/decoder.h"
#include "gpu_engine/codec/gdeflate/format.h"
#include "tests/gpu_engine/gdeflate_reference.h"
#include "tests/gpu_engine/gdeflate_vectors.h"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::gdeflate {
namespace {

constexpr int level_max = 9;
constexpr std::size_t sizes[] = {1,    2,    31,    32,    33,    63,    64,    65,   127,  128,
                                 129,  130,  255,   256,   257,   258,   259,   511,  1023, 4095,
                                 4096, 4097, 32767, 32768, 32769, 65534, 65535, 65536};

// Level 0 stands for a page of literals. Empty when there is no page smaller than plain.
Bytes encode(int level, ByteView plain, std::size_t room) {
  GuardedMemory input(plain.size());
  GuardedMemory output(room);
  const MutableByteView in = input.last(plain.size());
  const MutableByteView out = output.last(room);
  std::copy(plain.begin(), plain.end(), in.begin());
  const std::size_t size =
      level == 0 ? encode_page_of_literals(in, out) : encode_page(level, in, out);
  EXPECT_LE(size, room);
  return Bytes(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size));
}

Bytes encode(int level, ByteView plain) {
  const Bytes page = encode(level, plain, plain.size());
  if (page.empty()) return page;
  EXPECT_LT(page.size(), plain.size());
  for (const auto decode : {decode_page, decode_page_plainly}) {
    Bytes decoded(plain.size(), 0xee);
    EXPECT_TRUE(decode(page, decoded));
    EXPECT_TRUE(std::equal(decoded.begin(), decoded.end(), plain.begin()));
  }
  return page;
}

// Each byte value occurs as often as the next two rarer ones together, which gives the deepest tree
// for this size.
Bytes make_fibonacci(std::size_t size, TestRandom& random) {
  Bytes made;
  std::size_t count = 1;
  std::size_t count_before = 1;
  for (Byte byte = 0; made.size() < size; ++byte) {
    made.insert(made.end(), std::min(count, size - made.size()), byte);
    count = std::exchange(count_before, count) + count_before;
  }
  for (std::size_t i = made.size(); i > 1; --i)
    std::swap(made[i - 1], made[random.below(i)]);
  return made;
}

Bytes make_repeats(std::size_t size, std::size_t period, TestRandom& random) {
  Bytes made = random.bytes(size);
  for (std::size_t i = period; i < size; ++i)
    made[i] = made[i - period];
  return made;
}

struct Maker {
  const char* name;
  std::function<Bytes(std::size_t, TestRandom&)> make;
};

const Maker makers[] = {
    {"all equal", [](std::size_t size, TestRandom&) { return Bytes(size, 0x55); }},
    {"random", [](std::size_t size, TestRandom& random) { return random.bytes(size); }},
    {"text",
     [](std::size_t size, TestRandom& random) { return make_data(DataKind::text, size, random); }},
    {"mixed",
     [](std::size_t size, TestRandom& random) { return make_data(DataKind::mixed, size, random); }},
    {"fibonacci", make_fibonacci},
    {"ramp",
     [](std::size_t size, TestRandom&) {
       Bytes made(size);
       for (std::size_t i = 0; i < size; ++i)
         made[i] = static_cast<Byte>(i);
       return made;
     }},
    {"two halves",
     [](std::size_t size, TestRandom& random) {
       return make_repeats(size, std::max<std::size_t>(1, size / 2), random);
     }},
    {"a match at the farthest distance",
     [](std::size_t size, TestRandom& random) {
       return make_repeats(size, size < 10 ? size : size - 5, random);
     }},
    {"any period",
     [](std::size_t size, TestRandom& random) {
       return make_repeats(size, 1 + random.below(size), random);
     }},
    // Lengths around the last symbol, which has 16 extra bits.
    {"runs of 255 to 262",
     [](std::size_t size, TestRandom& random) {
       Bytes made;
       while (made.size() < size)
         made.insert(made.end(), 255 + random.below(8), static_cast<Byte>(random.next()));
       made.resize(size);
       return made;
     }},
    // Bits of literals, then of matches: worth several blocks, one of them stored.
    {"noise between zeros",
     [](std::size_t size, TestRandom& random) {
       Bytes made = random.bytes(size);
       for (std::size_t i = 0; i < size; ++i)
         if (i / 16384 % 2 == 0) made[i] = static_cast<Byte>(i / 512);
       return made;
     }},
    {"few bytes",
     [](std::size_t size, TestRandom& random) {
       Bytes made = random.bytes(size);
       for (Byte& byte : made)
         byte &= 3;
       return made;
     }},
};

TEST(GdeflateEncoder, is_read_back_at_every_level_and_size) {
  TestRandom random;
  for (const Maker& maker : makers) {
    for (const std::size_t size : sizes) {
      const Bytes plain = maker.make(size, random);
      for (int level = 0; level <= level_max; ++level) {
        SCOPED_TRACE(testing::Message() << maker.name << ", " << size << ", level " << level);
        encode(level, plain);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(GdeflateEncoder, is_read_back_for_every_short_size) {
  TestRandom random;
  for (std::size_t size = 1; size <= 600; ++size) {
    for (const DataKind kind : {DataKind::zero, DataKind::text}) {
      SCOPED_TRACE(testing::Message() << size);
      const Bytes plain = make_data(kind, size, random);
      for (const int level : {0, 1, 3, 9})
        encode(level, plain);
      if (HasFailure()) return;
    }
  }
}

TEST(GdeflateEncoder, is_read_back_for_random_mixtures) {
  TestRandom random;
  for (int round = 0; round < 400; ++round) {
    const std::size_t size = 1 + random.below(page_plain_size_max);
    Bytes plain;
    while (plain.size() < size) {
      const std::size_t count = 1 + random.below(std::size_t{1} << random.below(14));
      const std::size_t from = plain.empty() ? 0 : random.below(plain.size());
      const auto alphabet = static_cast<unsigned>(1 + random.below(256));
      const bool repeats = random.below(2) == 0 && !plain.empty();
      for (std::size_t i = 0; i < count; ++i)
        plain.push_back(repeats ? Byte{plain[from + i]}
                                : static_cast<Byte>(random.below(alphabet)));
    }
    plain.resize(size);
    const int level = static_cast<int>(random.below(level_max + 1));
    SCOPED_TRACE(testing::Message() << "round " << round << ", level " << level);
    encode(level, plain);
    if (HasFailure()) return;
  }
}

TEST(GdeflateEncoder, gives_nothing_for_what_does_not_get_smaller) {
  TestRandom random;
  for (int level = 0; level <= level_max; ++level) {
    for (const std::size_t size : sizes)
      EXPECT_TRUE(encode(level, random.bytes(size)).empty()) << size << ", level " << level;
    EXPECT_TRUE(encode(level, Bytes(page_size_bytes_min)).empty());
    EXPECT_FALSE(encode(level, Bytes(1000)).empty());
  }
}

TEST(GdeflateEncoder, gives_nothing_where_the_page_does_not_fit_and_stays_in_its_room) {
  TestRandom random;
  for (int level = 0; level <= level_max; ++level) {
    const Bytes plain = make_data(DataKind::text, 30000, random);
    const Bytes page = encode(level, plain);
    ASSERT_FALSE(page.empty());
    EXPECT_TRUE(encode(level, plain, page.size()) == page);
    for (const std::size_t room :
         {page.size() - 1, page.size() - 4, page.size() / 2, std::size_t{1}})
      EXPECT_TRUE(encode(level, plain, room).empty());
  }
}

TEST(GdeflateEncoder, knows_the_best_pages_of_simple_bytes) {
  // One literal and one match: one word for each lane, a second one for those two that are read and
  // the first of the header, and hardly more.
  for (int level = 1; level <= level_max; ++level)
    EXPECT_LE(encode(level, Bytes(page_plain_size_max)).size(), page_size_bytes_min + 40);
  // Literals alone: one bit each, and two words of a lane are never quite used.
  EXPECT_LE(encode(0, Bytes(page_plain_size_max)).size(),
            page_plain_size_max / 8 + 2 * page_size_bytes_min);
}

TEST(GdeflateEncoder, writes_literals_alone_where_it_is_asked_to) {
  // Three bytes in turn: a match would make the page tiny, literals need log2(3) bits each at
  // least.
  Bytes plain(page_plain_size_max);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = "abc"[i % 3];
  EXPECT_GT(encode(0, plain).size(), plain.size() * 158 / 800);
  EXPECT_LT(encode(1, plain).size(), 400u);
}

TEST(GdeflateEncoder, takes_literals_where_matches_do_not_pay) {
  // Random bytes of eight values: a literal takes three bits, and there are matches of five or six
  // bytes everywhere.
  TestRandom random;
  Bytes plain = random.bytes(page_plain_size_max);
  for (Byte& byte : plain)
    byte &= 7;
  const std::size_t of_literals = encode(0, plain).size();
  for (int level = 2; level <= level_max; ++level)
    EXPECT_LE(encode(level, plain).size(), of_literals + of_literals / 100) << level;
}

TEST(GdeflateEncoder, gets_smaller_by_level_on_the_corpus) {
  std::array<std::size_t, level_max + 1> sums{};
  for (const Bytes& plain : read_corpus_samples())
    for (int level = 0; level <= level_max; ++level) {
      const Bytes page = encode(level, plain);
      sums[level] += page.empty() ? plain.size() : page.size();
    }
  for (int level = 1; level <= level_max; ++level)
    EXPECT_LT(sums[level], sums[level - 1]) << level;
}

TEST(GdeflateOracle, the_reference_codec_reads_our_pages) {
  const GdeflateReference reference;
  if (!reference) GTEST_SKIP() << "NACRE_GDEFLATE_REFERENCE names no library";
  std::size_t pages = 0;
  for (const Bytes& plain : read_corpus_samples())
    for (int level = 0; level <= level_max; ++level) {
      const Bytes page = encode(level, plain);
      if (page.empty()) continue;
      ASSERT_TRUE(reference.agrees(page, plain)) << "level " << level;
      ++pages;
      // A judge that says yes to everything is none.
      Bytes other = plain;
      other[plain.size() / 2] ^= 1;
      EXPECT_FALSE(reference.agrees(page, other));
    }
  EXPECT_GT(pages, 0u);
}

TEST(GdeflateOracle, our_pages_are_no_larger_than_those_of_the_reference_codec) {
  std::size_t sum_6 = 0, sum_9 = 0, reference_6 = 0, reference_9 = 0;
  const std::vector<Bytes> samples = read_corpus_samples();
  for (const Bytes& plain : samples) {
    sum_6 += encode(6, plain).size();
    sum_9 += encode(9, plain).size();
  }
  for (const GdeflateSize& size : read_gdeflate_sizes("-1000000-65536")) {
    if (size.level == 6) reference_6 += size.page_size;
    if (size.level == 9) reference_9 += size.page_size;
  }
  EXPECT_GT(reference_6, reference_9);
  EXPECT_LE(sum_6, reference_6);
  EXPECT_LE(sum_9, reference_9);
}

}  // namespace
}  // namespace nacre::engine::gdeflate
