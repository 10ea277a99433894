// SPDX-License-Identifier: Apache-2.0
// Base64 against the vectors of RFC 4648, and both forms: one text for each byte string.
#include "metadata/text/text_bytes.h"

#include <gtest/gtest.h>

#include <random>

#include "metadata/text/rfc3339.h"

namespace nacre::metadata {
namespace {

TEST(Base64, matches_rfc_4648) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : vectors) {
    EXPECT_EQ(to_base64(as_bytes(plain)), text);
    const auto back = from_base64(text);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(as_text(*back), plain);
  }
  EXPECT_EQ(to_base64(Bytes{0xfb, 0xff, 0xbf}), "+/+/");
}

TEST(Base64, refuses_every_other_text) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "====", "=", "Zm9v\n",
                           "Zm 9v", "Zm-v", "Z===", "Zm9v=", "=Zm9"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(TextBytes, random_bytes_come_back) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (std::size_t size = 0; size < 200; ++size) {
    Bytes bytes(size);
    for (Byte& byte : bytes)
      byte = static_cast<Byte>(random());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    Bytes back(size);
    ASSERT_TRUE(from_hex(to_hex(bytes), back));
    EXPECT_EQ(back, bytes);
  }
}

TEST(Hex, refuses_every_other_text) {
  Bytes out(2);
  EXPECT_TRUE(from_hex("00ff", out));
  EXPECT_EQ(out, (Bytes{0x00, 0xff}));
  for (const char* text : {"", "00", "00f", "00ff0", "00FF", "00fg", "0x0f", " 0ff"}) {
    EXPECT_FALSE(from_hex(text, out)) << text;
  }
}

TEST(Rfc3339, writes_utc_to_the_second) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(951782399), "2000-02-28T23:59:59Z");
  EXPECT_EQ(rfc3339(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(rfc3339_now().size(), 20u);
}

}  // namespace
}  // namespace nacre::metadata
