// SPDX-License-Identifier: Apache-2.0
// Listings out of the kernel's cache while names change. A process that has made, moved or removed
// a name and then lists the directory sees the change, also while other processes are listing it.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

// A listing piece by piece, as the kernel gives it.
class Listing {
 public:
  explicit Listing(const std::string& path) : directory_(path, O_RDONLY | O_DIRECTORY) {}
  // One call; false at the end.
  bool take_piece(std::size_t size_bytes = 32u << 10) {
    std::vector<char> buffer(size_bytes);
    const long got = syscall(SYS_getdents64, int{directory_}, buffer.data(), buffer.size());
    EXPECT_GE(got, 0) << strerror(errno);
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      if (entry->d_name[0] != '.') names_.emplace_back(entry->d_name);
      at += entry->d_reclen;
    }
    return got > 0;
  }
  void take_rest() {
    while (take_piece()) {
    }
  }
  bool has(std::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  File directory_;
  std::vector<std::string> names_;
};

std::vector<std::string> names_in(const std::string& path) {
  Listing listing(path);
  listing.take_rest();
  return listing.names();
}

class FuseListings : public FuseMount {
 protected:
  void SetUp() override {
    FuseMount::SetUp();
    if (session_) {
      ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
    }
  }
  std::string in_d(std::string_view name) const { return path("d/" + std::string(name)); }
  // One process has read half of a listing when `change` happens. A second process lists the
  // directory, and then the first one reads the rest.
  Listing listing_around(const std::function<void()>& change) {
    Listing early(path("d"));
    EXPECT_TRUE(early.take_piece());
    change();
    Listing late(path("d"));
    EXPECT_TRUE(late.take_piece());
    early.take_rest();
    late.take_rest();
    return late;
  }
};

TEST_F(FuseListings, do_not_end_with_what_was_removed_before_they_began) {
  for (int i = 0; i < 8; ++i)
    put(in_d("f" + std::to_string(i)), "");
  const std::string last = names_in(path("d")).back();
  put(in_d("other"), "");  // the kernel's listing is none any more
  const Listing late = listing_around([&] { EXPECT_EQ(unlink(in_d(last).c_str()), 0); });
  EXPECT_FALSE(late.has(last));
  EXPECT_EQ(late.names().size(), 8u);
}

TEST_F(FuseListings, do_not_end_with_what_was_moved_away_before_they_began) {
  for (int i = 0; i < 8; ++i)
    ASSERT_EQ(mkdir(in_d("f" + std::to_string(i)).c_str(), 0755), 0);
  ASSERT_EQ(mkdir(in_d("g").c_str(), 0755), 0);
  const std::string last = names_in(path("d")).back();
  put(in_d("other"), "");
  const Listing late =
      listing_around([&] { EXPECT_EQ(rename(in_d(last).c_str(), path("elsewhere").c_str()), 0); });
  EXPECT_FALSE(late.has(last));
  const std::string removed = last == "g" ? "f0" : "g";
  const Listing later = listing_around([&] { EXPECT_EQ(rmdir(in_d(removed).c_str()), 0); });
  EXPECT_FALSE(later.has(removed));
}

TEST_F(FuseListings, have_what_was_made_before_they_began) {
  for (int i = 0; i < 2000; ++i)
    put(in_d("f" + std::to_string(i)), "");
  const Listing late = listing_around([&] {
    for (int i = 0; i < 40; i += 4) {
      put(in_d("new" + std::to_string(i)), "");
      EXPECT_EQ(mkdir(in_d("new" + std::to_string(i + 1)).c_str(), 0755), 0);
      EXPECT_EQ(symlink("to", in_d("new" + std::to_string(i + 2)).c_str()), 0);
      EXPECT_EQ(link(in_d("f0").c_str(), in_d("new" + std::to_string(i + 3)).c_str()), 0);
    }
  });
  for (int i = 0; i < 40; ++i)
    EXPECT_TRUE(late.has("new" + std::to_string(i))) << i;
}

TEST_F(FuseListings, are_kept_again_after_a_change) {
  for (int i = 0; i < 8; ++i)
    put(in_d("f" + std::to_string(i)), "");
  names_in(path("d"));
  put(in_d("other"), "");
  names_in(path("d"));
  const auto listings = [this] { return count({FUSE_READDIR, FUSE_READDIRPLUS}); };
  EXPECT_EQ(fewest(0, listings, [&] { EXPECT_EQ(names_in(path("d")).size(), 9u); }), 0u);
}

TEST_F(FuseListings, show_each_of_many_what_it_did_itself) {
  constexpr int worker_count = 4;
  constexpr int round_count = 1000;
  std::atomic<int> missing{0}, stale{0};
  const auto work = [&](int worker) {
    const auto is_listed = [&](const std::string& name) {
      const auto names = names_in(path("d"));
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (int i = 0; i < round_count; ++i) {
      const std::string name = std::to_string(worker) + "." + std::to_string(i);
      put(in_d(name), "");
      if (!is_listed(name)) ++missing;
      EXPECT_EQ(rename(in_d(name).c_str(), in_d("r" + name).c_str()), 0);
      if (!is_listed("r" + name)) ++missing;
      if (is_listed(name)) ++stale;
      EXPECT_EQ(unlink(in_d("r" + name).c_str()), 0);
      if (is_listed("r" + name)) ++stale;
    }
  };
  std::vector<std::thread> workers;
  for (int worker = 0; worker < worker_count; ++worker)
    workers.emplace_back(work, worker);
  for (std::thread& worker : workers)
    worker.join();
  EXPECT_EQ(missing, 0);
  EXPECT_EQ(stale, 0);
}

}  // namespace

}  // namespace nacre::tests
