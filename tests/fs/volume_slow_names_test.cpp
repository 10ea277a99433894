// SPDX-License-Identifier: Apache-2.0
// Rows of names that the disk is slow to read. Calls on other names do not wait for them, and
// changes that were made meanwhile are seen.
#include <atomic>
#include <future>
#include <string>

#include "tests/fs/disk_gate.h"
#include "tests/fs/volume_fixture.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

class VolumeSlowNames : public VolumeTest {
 protected:
  // A directory whose rows only the disk has.
  void SetUp() override {
    VolumeTest::SetUp();
    slow_ = make_directory(root, "slow");
    for (int i = 0; i < file_count; ++i)
      make_file(slow_, "a name of some length " + std::to_string(i));
    // Far from the rows of other directories, which are read below.
    int place = 0;
    NACRE_EXPECT_OK(volume().read_directory(slow_, 0, false, [&](const fs::DirectoryEntry& entry) {
      name_ = entry.name;
      return ++place < file_count / 2;
    }));
    other_ = make_directory(root, "other");
    remount();
    EXPECT_EQ(find(root, "slow"), slow_);
    EXPECT_EQ(find(root, "other"), other_);
    make_file(other_, "first");
    backing_->watch([this](std::uint32_t operation, std::string_view path) {
      if ((operation & operation_read) != 0 && holds_.exchange(false)) gate_.pass(operation, path);
    });
  }
  void TearDown() override {
    gate_.set_open(true);
    backing_->watch({});
    VolumeTest::TearDown();
  }

  // Begins a call whose first read does not end before answer().
  std::future<Result<>> begin_slow(std::function<Result<>()> call) {
    gate_.set_open(false);
    holds_ = true;
    auto slow = std::async(std::launch::async, std::move(call));
    gate_.wait_for_one();
    return slow;
  }
  void answer() { gate_.set_open(true); }
  Result<> look_up(fs::InodeNumber parent, const std::string& name) {
    NACRE_TRY(volume().lookup(parent, name));
    return {};
  }
  Result<> rename(fs::InodeNumber parent, const std::string& from, const std::string& to) {
    return volume().rename(parent, from, parent, to, fs::RenameMode::replace);
  }

  static constexpr int file_count = 4000;
  fs::InodeNumber slow_;
  std::string name_;  // in slow_
  fs::InodeNumber other_;
  DiskGate gate_{operation_read};
  std::atomic<bool> holds_{false};
};

TEST_F(VolumeSlowNames, keep_no_others_waiting) {
  fs::InodeNumber linked;
  const std::vector<std::function<Result<>()>> slow_calls = {
      [&] { return look_up(slow_, name_); }, [&] { return rename(slow_, name_, "new"); },
      [&] { return volume().unlink(slow_, name_); },
      [&] { return volume().link(linked, slow_, name_).map([](auto&&) {}); }};
  for (std::size_t i = 0; i < slow_calls.size(); ++i) {
    SCOPED_TRACE(i);
    linked = make_file(other_, "linked");
    auto slow = begin_slow(slow_calls[i]);
    auto others = std::async(std::launch::async, [&] {
      make_file(other_, "a");
      EXPECT_TRUE(exists(other_, "a"));
      NACRE_EXPECT_OK(rename(other_, "a", "b"));
      NACRE_EXPECT_OK(volume().unlink(other_, "b"));
    });
    EXPECT_EQ(others.wait_for(patience), std::future_status::ready) << "others wait for the disk";
    answer();
    if (i + 1 < slow_calls.size()) {
      NACRE_EXPECT_OK(slow.get());
    } else {
      EXPECT_CODE(exists, slow.get());  // a name that is there is one that has to be read
    }
    others.wait();
    TearDown();
    SetUp();
  }
}

// Each slow call has read, or is about to read, a name that another call changes before the slow
// call holds the lock.
TEST_F(VolumeSlowNames, see_what_changed_while_they_waited) {
  {
    auto slow = begin_slow([&] { return look_up(slow_, name_); });
    NACRE_EXPECT_OK(volume().unlink(slow_, name_));
    answer();
    EXPECT_CODE(not_found, slow.get());
  }
  TearDown();
  SetUp();
  {
    auto slow = begin_slow([&] { return volume().unlink(slow_, name_); });
    NACRE_EXPECT_OK(rename(slow_, name_, "elsewhere"));
    answer();
    EXPECT_CODE(not_found, slow.get());
    EXPECT_TRUE(exists(slow_, "elsewhere"));
  }
  TearDown();
  SetUp();
  {
    auto slow = begin_slow([&] { return rename(slow_, name_, "new"); });
    NACRE_EXPECT_OK(volume().unlink(slow_, name_));
    const fs::InodeNumber again = make_file(slow_, name_);
    answer();
    NACRE_EXPECT_OK(slow.get());
    EXPECT_EQ(find(slow_, "new"), again) << "the file that has the name by now";
  }
}

// A call makes or links a name whose row it has read, and the name is removed before the call goes
// on.
TEST_F(VolumeSlowNames, make_names_that_have_gone_meanwhile) {
  {
    auto slow = begin_slow([&] {
      return volume().make_node(slow_, name_, caller_, S_IFREG | 0644, 0).map([](auto&&) {});
    });
    NACRE_EXPECT_OK(volume().unlink(slow_, name_));
    answer();
    NACRE_EXPECT_OK(slow.get());
    EXPECT_EQ(stat(find(slow_, name_)).link_count, 1u);
  }
  TearDown();
  SetUp();
  const fs::InodeNumber again = make_file(other_, "again");
  {
    auto slow = begin_slow([&] { return volume().link(again, slow_, name_).map([](auto&&) {}); });
    NACRE_EXPECT_OK(volume().unlink(slow_, name_));
    answer();
    NACRE_EXPECT_OK(slow.get());
    EXPECT_EQ(find(slow_, name_), again);
    EXPECT_EQ(stat(again).link_count, 2u);
  }
}

}  // namespace
}  // namespace nacre::tests
