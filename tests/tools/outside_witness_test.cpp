// SPDX-License-Identifier: Apache-2.0
// Tests of a witness that lies elsewhere: what is taken from it, and what is refused.
#include "tools/cli/outside_witness.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "tools/cli/bounded_command.h"

namespace nacre::tools {
namespace {

constexpr auto patient = std::chrono::minutes(10);  // no test waits for this
const std::string this_volume = "00112233445566778899aabbccddeeff";

Sight came_to(std::uint64_t sessions, std::uint64_t changes) {
  Sight made{.time = "2026-01-01T00:00:00Z",
             .age = {.session_count = sessions, .change_count = changes},
             .keyring_generation = 3,
             .superblock_generation = 2};
  made.age.session.fill(7);
  return made;
}

class OutsideWitnessTest : public testing::Test {
 protected:
  OutsideWitnessTest() {
    std::string pattern = testing::TempDir() + "outside.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    options_.file = folder_ / "witness";
  }
  ~OutsideWitnessTest() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& text) const {
    std::ofstream(options_.file, std::ios::binary | std::ios::trunc) << text;
    ASSERT_EQ(::chmod(options_.file.c_str(), 0600), 0);
  }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(options_.file, std::ios::binary).rdbuf();
    return text.str();
  }
  Result<OutsideWitness> read() const {
    return OutsideWitness::read(options_, this_volume, patient);
  }
  // The reason why the witness is refused; empty if it is not.
  std::string refusal() const {
    const auto witness = read();
    return witness ? "" : witness.error().message;
  }
  void expect_refused(const std::string& words) const {
    EXPECT_NE(refusal().find(words), std::string::npos) << refusal();
  }

  std::filesystem::path folder_;
  OutsideWitnessOptions options_;
};

TEST_F(OutsideWitnessTest, gives_back_what_was_noted_with_eight_closings) {
  put("");
  auto first = read();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->seen());
  for (std::uint64_t i = 1; i <= 11; ++i)
    ASSERT_TRUE(first->note(came_to(i, i * 10), Witness::Moment::closed));
  ASSERT_TRUE(first->note(came_to(12, 130), Witness::Moment::in_use));
  const auto again = read();
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(again->seen());
  EXPECT_EQ(again->seen()->last.age, came_to(12, 130).age);
  EXPECT_EQ(again->seen()->last.keyring_generation, 3u);
  ASSERT_EQ(again->seen()->closings.size(), closings_max);
  EXPECT_EQ(again->seen()->closings.front().age, came_to(11, 110).age);
  EXPECT_EQ(content().find(folder_.string()), std::string::npos) << "no path is in it";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "witness.new"));
}

TEST_F(OutsideWitnessTest, begins_anew_with_an_accepted_state) {
  put("");
  auto witness = read();
  ASSERT_TRUE(witness->note(came_to(9, 90), Witness::Moment::closed));
  witness->accept();
  ASSERT_TRUE(witness->note(came_to(3, 30), Witness::Moment::in_use));
  const auto again = read();
  EXPECT_EQ(again->seen()->last.age, came_to(3, 30).age);
  EXPECT_TRUE(again->seen()->closings.empty()) << "those are of the history that was given up";
}

TEST_F(OutsideWitnessTest, a_missing_file_is_no_first_use) {
  expect_refused("is its disk missing?");
  options_.file = folder_ / "no folder" / "witness";
  expect_refused("no folder");
}

TEST_F(OutsideWitnessTest, makes_no_file_where_the_disk_is_gone) {
  put("");
  auto witness = read();
  ASSERT_TRUE(witness);
  std::filesystem::remove(options_.file);
  const auto noted = witness->note(came_to(1, 1), Witness::Moment::closed);
  ASSERT_FALSE(noted);
  EXPECT_NE(noted.error().message.find("is its disk missing?"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(OutsideWitnessTest, of_another_volume_is_refused) {
  put("");
  auto other = OutsideWitness::read(options_, "ff" + this_volume.substr(2), patient);
  ASSERT_TRUE(other->note(came_to(1, 1), Witness::Moment::closed));
  expect_refused("this is the witness of another volume");
}

TEST_F(OutsideWitnessTest, whatever_is_no_witness_is_refused) {
  put("");
  auto witness = read();
  ASSERT_TRUE(witness->note(came_to(4, 40), Witness::Moment::closed));
  const std::string good = content();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::string> bad = {
      "no JSON",
      "{}",
      "[]",
      "null",
      good.substr(0, good.size() / 2),
      std::string(outside_witness_size_bytes_max, '['),
      with("\"change_count\": 40", "\"change_count\": -40"),
      with("\"change_count\": 40", "\"change_count\": 4.5"),
      with("\"change_count\": 40", "\"change_count\": 18446744073709551616"),
      with("\"session\": \"0707", "\"session\": \"07"),
      with("2026-01-01T00:00:00Z", "2026\\u001b[2J"),
      with("2026-01-01T00:00:00Z", std::string(1000, '1')),
      std::string("\xff\xfe\0", 3)};
  for (const auto& text : bad) {
    put(text);
    EXPECT_NE(refusal().find("what is kept there is not a witness"), std::string::npos)
        << text.substr(0, 80) << ": " << refusal();
  }
  put(std::string(outside_witness_size_bytes_max + 1, ' '));
  expect_refused("the file has more than 65536 bytes");
  put(with("\"nacre_witness\": 1", "\"nacre_witness\": 2"));
  expect_refused("newer Nacre");
  put(good);
  EXPECT_EQ(refusal(), "");
}

TEST_F(OutsideWitnessTest, a_file_that_others_could_change_is_refused) {
  put("");
  ASSERT_EQ(::chmod(options_.file.c_str(), 0620), 0);
  expect_refused("other users may write to the file: its mode is 0620");
  ASSERT_EQ(::chmod(options_.file.c_str(), 0644), 0);
  EXPECT_EQ(refusal(), "");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(options_.file.c_str(), 12345, 12345), 0);
    expect_refused("the file belongs to user 12345");
  }
}

TEST_F(OutsideWitnessTest, follows_no_link_and_waits_for_no_pipe) {
  const auto place = folder_ / "target";
  std::ofstream(place) << "";
  std::filesystem::create_symlink(place, options_.file);
  expect_refused("symbolic link");
  std::filesystem::remove(options_.file);
  ASSERT_EQ(::mkfifo(options_.file.c_str(), 0600), 0);
  expect_refused("not a regular file");
  std::filesystem::remove(options_.file);
  // An attacker left a link where the new file is made.
  put("");
  std::filesystem::create_symlink(place, folder_ / "witness.new");
  auto witness = read();
  ASSERT_TRUE(witness->note(came_to(1, 1), Witness::Moment::closed));
  EXPECT_EQ(std::filesystem::file_size(place), 0u);
}

TEST_F(OutsideWitnessTest, keeps_what_it_had_when_it_cannot_be_written) {
  put("");
  auto witness = read();
  ASSERT_TRUE(witness->note(came_to(1, 1), Witness::Moment::closed));
  const std::string before = content();
  // A folder where the new file would be made: as little can be written as on a full disk.
  std::filesystem::create_directories(folder_ / "witness.new" / "below");
  const auto noted = witness->note(came_to(2, 2), Witness::Moment::closed);
  ASSERT_FALSE(noted);
  EXPECT_EQ(content(), before);
  EXPECT_EQ(witness->seen()->last.age, came_to(1, 1).age);
  std::filesystem::remove_all(folder_ / "witness.new");
  EXPECT_TRUE(witness->note(came_to(2, 2), Witness::Moment::closed));
}

TEST_F(OutsideWitnessTest, in_the_volume_itself_is_refused) {
  EXPECT_FALSE(settle_outside_witness(options_, folder_));
  EXPECT_TRUE(settle_outside_witness(options_, folder_ / "volume"));
  OutsideWitnessOptions both{.file = "a", .command = "b"};
  EXPECT_FALSE(settle_outside_witness(both, "/srv/volume"));
}

TEST_F(OutsideWitnessTest, behind_a_command_is_read_and_written) {
  const std::string store = folder_ / "store";
  std::ofstream(store) << "";
  OutsideWitnessOptions options{.command = "f() { case $1 in read) cat '" + store +
                                           "';; write) cat >'" + store + "';; esac; }; f"};
  auto witness = OutsideWitness::read(options, this_volume, patient);
  ASSERT_TRUE(witness) << witness.error().message;
  EXPECT_FALSE(witness->seen());
  ASSERT_TRUE(witness->note(came_to(5, 50), Witness::Moment::closed));
  const auto again = OutsideWitness::read(options, this_volume, patient);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->seen()->last.age, came_to(5, 50).age);
  options.command = "echo secret >/dev/null; false";
  const auto failed = OutsideWitness::read(options, this_volume, patient);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message,
            "the witness command: with 'read', the command ended with status 1");
}

CommandRequest request(const std::string& command) {
  return {.command = command,
          .argument = "read",
          .input = "input",
          .output_size_bytes_max = 1000,
          .limit = patient};
}

TEST(BoundedCommand, gives_the_output_of_a_command_that_succeeds) {
  EXPECT_EQ(run_bounded_command(request("printf '%s '")).value_or("-"), "read ");
  EXPECT_EQ(run_bounded_command(request("cat; pwd; :")).value_or("-"), "input/\n");
  EXPECT_EQ(run_bounded_command(request("exec 0<&-; echo")).value_or("-"), "read\n");
}

TEST(BoundedCommand, does_not_wait_for_what_was_left_behind) {
  // The process in the background keeps the output open, as ssh's master process does.
  const auto process = run_bounded_command(request("sleep 600 & echo $!; :")).value_or("0");
  const int left_behind = std::stoi(process);
  ASSERT_GT(left_behind, 0);
  EXPECT_EQ(::kill(left_behind, SIGKILL), 0) << "it is still there";
}

TEST(BoundedCommand, ends_a_command_that_does_not_end) {
  auto hangs = request("sleep 600; :");
  hangs.limit = std::chrono::milliseconds(100);
  const auto done = run_bounded_command(hangs);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::cancelled);
  EXPECT_NE(done.error().message.find("did not end within 1 s"), std::string::npos);
}

TEST(BoundedCommand, ends_a_command_that_says_too_much) {
  const auto done = run_bounded_command(request("yes; :"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::too_big);
}

TEST(BoundedCommand, tells_how_a_command_failed) {
  EXPECT_EQ(run_bounded_command(request("exit 3; :")).error().message,
            "the command ended with status 3");
  EXPECT_EQ(run_bounded_command(request("kill -9 $$; :")).error().message,
            "the command was ended by signal 9");
}

// Otherwise a command like ssh would ask there, and wait.
TEST(BoundedCommand, has_no_terminal) {
  const auto said =
      run_bounded_command(request("(: </dev/tty) 2>/dev/null && echo has; echo no; :"));
  EXPECT_EQ(said.value_or("-"), "no\n");
}

}  // namespace
}  // namespace nacre::tools
