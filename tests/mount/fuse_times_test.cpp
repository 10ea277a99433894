// SPDX-License-Identifier: Apache-2.0
// Time stamps of the daemon, and those that the kernel sets itself, come from one clock: a later
// change never looks older. make, ninja and editors compare them.
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <map>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

using Stamp = std::pair<std::int64_t, std::int64_t>;

Stamp to_stamp(const timespec& time) {
  return {time.tv_sec, time.tv_nsec};
}

class FuseTimes : public FuseMount {
 protected:
  void SetUp() override {
    FuseMount::SetUp();
    if (session_) put(path("written"), "x");
  }
  std::string next() { return path("n" + std::to_string(number_++)); }
  Stamp modified(const std::string& path) const { return to_stamp(stat_of(path).st_mtim); }
  Stamp changed(const std::string& path) const { return to_stamp(stat_of(path).st_ctim); }

  // A call that changes something and returns its new time stamp.
  using Act = std::function<Stamp()>;
  std::map<std::string, Act> acts() {
    return {
        {"a new file",
         [this] {
           const std::string name = next();
           put(name, "");
           return modified(name);
         }},
        {"a new file with content",
         [this] {
           const std::string name = next();
           put(name, "content");
           return modified(name);
         }},
        {"a new folder",
         [this] {
           const std::string name = next();
           EXPECT_EQ(mkdir(name.c_str(), 0755), 0);
           return modified(name);
         }},
        {"a new link",
         [this] {
           const std::string name = next();
           EXPECT_EQ(symlink("x", name.c_str()), 0);
           struct stat status = {};
           EXPECT_EQ(lstat(name.c_str(), &status), 0);
           return to_stamp(status.st_mtim);
         }},
        {"a folder that got an entry",
         [this] {
           const std::string name = next();
           EXPECT_EQ(mkdir(name.c_str(), 0755), 0);
           put(name + "/x", "");
           return modified(name);
         }},
        {"a folder that lost an entry",
         [this] {
           const std::string name = next();
           EXPECT_EQ(mkdir(name.c_str(), 0755), 0);
           put(name + "/x", "");
           EXPECT_EQ(unlink((name + "/x").c_str()), 0);
           return modified(name);
         }},
        {"a file that was written",
         [this] {
           EXPECT_EQ(write(File(path("written"), O_WRONLY), "more", 4), 4);
           return modified(path("written"));
         }},
        {"a file that was touched",
         [this] {
           EXPECT_EQ(utimensat(AT_FDCWD, path("written").c_str(), nullptr, 0), 0);
           return modified(path("written"));
         }},
        {"a folder that was touched",
         [this] {
           EXPECT_EQ(utimensat(AT_FDCWD, mount_point_.c_str(), nullptr, 0), 0);
           return modified(mount_point_);
         }},
        {"a file that was cut",
         [this] {
           EXPECT_EQ(truncate(path("written").c_str(), 2), 0);
           EXPECT_EQ(truncate(path("written").c_str(), 3), 0);
           return modified(path("written"));
         }},
        {"a file whose mode changed",
         [this] {
           EXPECT_EQ(chmod(path("written").c_str(), 0600), 0);
           return changed(path("written"));
         }},
        {"a folder whose mode changed",
         [this] {
           EXPECT_EQ(chmod(mount_point_.c_str(), 0700), 0);
           return changed(mount_point_);
         }},
        {"a file that was renamed",
         [this] {
           const std::string name = next();
           EXPECT_EQ(rename(path("written").c_str(), name.c_str()), 0);
           EXPECT_EQ(rename(name.c_str(), path("written").c_str()), 0);
           return changed(path("written"));
         }},
        {"a file that got an attribute",
         [this] {
           EXPECT_EQ(setxattr(path("written").c_str(), "user.a", "1", 1, 0), 0);
           return changed(path("written"));
         }},
    };
  }

 private:
  int number_ = 0;
};

TEST_F(FuseTimes, of_what_is_changed_later_are_not_older) {
  constexpr int round_count = 15;
  const auto all = acts();
  for (const auto& [first, before] : all) {
    for (const auto& [second, after] : all) {
      int wrong = 0;
      for (int round = 0; round < round_count; ++round) {
        const Stamp earlier = before();
        if (after() < earlier) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << "of " << round_count << " times " << second << " is older than "
                          << first << " of before";
    }
  }
}

// Other file systems with finer time stamps push the kernel's clock ahead of CLOCK_REALTIME_COARSE.
TEST_F(FuseTimes, do_not_fall_behind_the_kernels_where_others_have_finer_ones) {
  const ScratchFolder elsewhere;
  const std::string fine = elsewhere.path() + "/fine";
  int wrong = 0;
  for (int i = 0; i < 300; ++i) {
    put(fine, "x");
    stat_of(fine);
    put(fine, "y");
    const Stamp written = [&] {
      EXPECT_EQ(write(File(path("written"), O_WRONLY), "more", 4), 4);
      return modified(path("written"));
    }();
    const std::string name = next();
    EXPECT_EQ(mkdir(name.c_str(), 0755), 0);
    if (modified(name) < written) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace

}  // namespace nacre::tests
