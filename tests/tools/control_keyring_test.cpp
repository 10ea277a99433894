// SPDX-License-Identifier: Apache-2.0
// Keyrings over the control socket: one of any allowed size arrives unchanged, and other texts are
// refused.
#include "tests/tools/control_fixture.h"

namespace nacre::fs {
namespace {

TEST_F(Control, a_keyring_is_handed_over_as_it_is_however_large) {
  std::string text = "{\n  \"text\": \"with \\\\ and \xc3\xa4\"\n}\n";
  for (const std::size_t size : {text.size(), std::size_t{5} << 20}) {
    text.resize(size, 'x');
    auto client = ControlClient::connect(mount_);
    ASSERT_TRUE(client);
    const auto done = client->replace_keyring(text);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_EQ(volume_.keyring, text);
  }
  EXPECT_EQ(ask("info")->at("keyring_generation"), 7);
}

TEST_F(Control, a_refused_keyring_says_why) {
  volume_.keyring_result = fail(ErrorCode::tampered, "no key of ours");
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client);
  const auto done = client->replace_keyring("{}");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::tampered);
  EXPECT_EQ(done.error().message, "no key of ours");
}

TEST_F(Control, a_keyring_that_is_none_is_refused) {
  const std::string command = "{\"command\": \"replace_keyring\"}\n";
  for (const char* line : {"{}\n", "{\"keyring\": 5}\n", "nonsense\n", ""}) {
    const auto reply = send_raw(command + line);
    EXPECT_EQ(reply.value("ok", true), false) << line;
  }
  const auto reply = send_raw(command + std::string(keyring_line_size_bytes_max + 10, 'x'));
  EXPECT_EQ(reply.value("ok", true), false);
  EXPECT_TRUE(volume_.keyring.empty());
}

}  // namespace
}  // namespace nacre::fs
