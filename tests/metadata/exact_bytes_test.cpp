// SPDX-License-Identifier: Apache-2.0
// Names of files come through JSON as they are, whatever their bytes.
#include "metadata/text/exact_bytes.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nacre::metadata {

namespace {

using nlohmann::json;

std::optional<std::string> through_json(const std::string& bytes) {
  json object = json::object();
  put_bytes(object, "path", bytes);
  return get_bytes(json::parse(to_json_line(object)), "path");
}

TEST(ExactBytes, every_byte_comes_back) {
  for (int first = 0; first < 256; ++first) {
    for (const char* const second : {"", "\x80", "\xbf", "a", "\xff"}) {
      const std::string bytes = std::string("/") + static_cast<char>(first) + second;
      EXPECT_EQ(through_json(bytes), bytes) << first << second;
    }
  }
  const std::string all = "\xff\xfe\n\"\\\xe2\x80\xae\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf";
  EXPECT_EQ(through_json(all), all);
}

TEST(ExactBytes, text_stands_there_once_and_other_bytes_twice) {
  json object = json::object();
  put_bytes(object, "volume", "/srv/\xc3\xa4\n");
  EXPECT_EQ(object, json({{"volume", "/srv/\xc3\xa4\n"}}));
  put_bytes(object, "volume", "/srv/\xff");
  EXPECT_EQ(object, json({{"volume", "/srv/\xef\xbf\xbd"}, {"volume_base64", "L3Nydi//"}}));
}

TEST(ExactBytes, a_list_has_all_of_its_names_again_if_one_is_no_text) {
  json object = json::object();
  put_bytes(object, "paths", std::vector<std::string>{"a", "b"});
  EXPECT_EQ(object, json({{"paths", {"a", "b"}}}));
  put_bytes(object, "paths", std::vector<std::string>{"a", "\xff"});
  EXPECT_EQ(object, json({{"paths", {"a", "\xef\xbf\xbd"}}, {"paths_base64", {"YQ==", "/w=="}}}));
}

TEST(ExactBytes, another_form_is_no_name) {
  for (const json& object :
       {json({{"other", "x"}}), json({{"path", 7}}), json({{"path", "x"}, {"path_base64", 7}}),
        json({{"path", "x"}, {"path_base64", "?"}}), json::array(), json("path")}) {
    EXPECT_EQ(get_bytes(object, "path"), std::nullopt) << object;
  }
}

}  // namespace

}  // namespace nacre::metadata
