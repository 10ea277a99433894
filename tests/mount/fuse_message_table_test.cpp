// SPDX-License-Identifier: Apache-2.0
// The messages that common sequences of system calls cost, exactly: the table in docs/KERNEL.md,
// "Messages", which must say the same.
//
// Each row is counted on a mount that has been asked everything which is asked once a mount. What a
// row prepares is not counted, nor are FORGETs: the kernel waits for no answer to them and sends
// them when it likes. The kernel may forget what it knows, or tick its clock, at any moment: a row
// holds when one of several attempts, each with names of its own, costs what it says.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/mount/fuse_mount.h"
#include "tests/support/source_folder.h"

namespace nacre::tests {

namespace {

constexpr std::array<std::pair<std::uint32_t, std::string_view>, 25> opcode_names = {{
    {FUSE_LOOKUP, "LOOKUP"},       {FUSE_GETATTR, "GETATTR"},
    {FUSE_CREATE, "CREATE"},       {FUSE_MKNOD, "MKNOD"},
    {FUSE_MKDIR, "MKDIR"},         {FUSE_SYMLINK, "SYMLINK"},
    {FUSE_LINK, "LINK"},           {FUSE_READLINK, "READLINK"},
    {FUSE_GETXATTR, "GETXATTR"},   {FUSE_SETXATTR, "SETXATTR"},
    {FUSE_LISTXATTR, "LISTXATTR"}, {FUSE_READ, "READ"},
    {FUSE_WRITE, "WRITE"},         {FUSE_COPY_FILE_RANGE, "COPY_FILE_RANGE"},
    {FUSE_SETATTR, "SETATTR"},     {FUSE_FSYNC, "FSYNC"},
    {FUSE_UNLINK, "UNLINK"},       {FUSE_RMDIR, "RMDIR"},
    {FUSE_RENAME, "RENAME"},       {FUSE_RENAME2, "RENAME2"},
    {FUSE_READDIR, "READDIR"},     {FUSE_READDIRPLUS, "READDIRPLUS"},
    {FUSE_OPEN, "OPEN"},           {FUSE_FLUSH, "FLUSH"},
    {FUSE_IOCTL, "IOCTL"},
}};
constexpr std::array<std::uint32_t, 3> uncounted = {FUSE_FORGET, FUSE_BATCH_FORGET, FUSE_INIT};

using Counts = std::map<std::uint32_t, std::uint64_t>;

// "LOOKUP, 3 WRITE": in the order of opcode_names, then by number.
std::string words_of(Counts counts) {
  std::string words;
  const auto add = [&](std::string_view name, std::uint64_t count) {
    if (count == 0) return;
    if (!words.empty()) words += ", ";
    if (count > 1) words += std::to_string(count) + " ";
    words += name;
  };
  for (const auto& [opcode, name] : opcode_names)
    add(name, std::exchange(counts[opcode], 0));
  for (const auto& [opcode, count] : counts)
    add("opcode " + std::to_string(opcode), count);
  return words.empty() ? "none" : words;
}

// The place of a row's calls: a folder of its own in the mount, which the kernel knows.
class Place {
 public:
  explicit Place(std::string folder) : folder_(std::move(folder)) {}
  std::string operator/(std::string_view name) const { return folder_ + "/" + std::string(name); }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

using Act = void (*)(const Place&);

enum class Kernel { knows, has_forgotten };  // what was prepared

struct Row {
  const char* test;
  std::string_view operation;  // as the document has it
  std::string_view messages;
  Kernel kernel;
  Act prepare;
  Act act;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.operation;
}

constexpr std::size_t large_file_bytes = 3u << 20;

void ok(std::int64_t result) {
  EXPECT_GE(result, 0) << strerror(errno);
}

void nothing(const Place&) {}
void make_file(const Place& place) {
  put(place / "f", "content");
}
void make_synced_file(const Place& place) {
  make_file(place);
  ok(fsync(File(place / "f", O_RDWR)));
}
void make_three(const Place& place) {
  ok(mkdir((place / "d").c_str(), 0755));
  for (const char* name : {"d/1", "d/2", "d/3"})
    put(place / name, "content");
}
void make_large(const Place& place) {
  put(place / "f", std::string(large_file_bytes, 'x'));
  ok(fsync(File(place / "f", O_RDWR)));
}
void read_whole(const Place& place) {
  std::array<char, 4096> buffer;
  const File file(place / "f", O_RDONLY);
  while (read(file, buffer.data(), buffer.size()) > 0) {
  }
}
void list(const Place& place) {
  DIR* directory = opendir(place.folder().c_str());
  ASSERT_NE(directory, nullptr);
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') stat_of(place / entry->d_name);
  }
  closedir(directory);
}
void list_d(const Place& place) {
  list(Place(place / "d"));
}

const std::array rows =
    {
        Row{"create", "create, write, close a small file", "LOOKUP, CREATE, GETXATTR, WRITE",
            Kernel::knows, nothing, make_file},
        Row{"create_two", "two of them in one directory",
            "2 LOOKUP, GETATTR, 2 CREATE, 2 GETXATTR, 2 WRITE", Kernel::knows, nothing,
            [](const Place& place) {
              make_file(place);
              put(place / "g", "content");
            }},
        Row{"extract", "create, write, fchown, fchmod, futimens, close (tar)",
            "LOOKUP, CREATE, 2 GETXATTR, WRITE, 3 SETATTR", Kernel::knows, nothing,
            [](const Place& place) {
              const File file(place / "f", O_WRONLY | O_CREAT | O_EXCL, 0600);
              ok(write(file, "content", 7));
              ok(fchown(file, geteuid(), getegid()));
              ok(fchmod(file, 0644));
              const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 2, .tv_nsec = 0}};
              ok(futimens(file, times));
            }},
        Row{"read_cold", "open, read, close, cold", "LOOKUP, READ", Kernel::has_forgotten,
            make_synced_file, read_whole},
        Row{"read_again", "the same again", "none", Kernel::knows,
            [](const Place& place) {
              make_synced_file(place);
              read_whole(place);
            },
            read_whole},
        Row{"stat_cold", "stat, cold", "LOOKUP", Kernel::has_forgotten, make_file,
            [](const Place& place) { stat_of(place / "f"); }},
        Row{"stat_written", "stat of what was just written", "GETATTR", Kernel::knows, make_file,
            [](const Place& place) { stat_of(place / "f"); }},
        Row{"stat_again", "stat again", "none", Kernel::knows,
            [](const Place& place) {
              make_file(place);
              stat_of(place / "f");
            },
            [](const Place& place) { stat_of(place / "f"); }},
        Row{"stat_missing", "stat of a missing name", "LOOKUP", Kernel::knows, nothing,
            [](const Place& place) {
              EXPECT_EQ(access((place / "f").c_str(), F_OK), -1);
              EXPECT_EQ(errno, ENOENT);
            }},
        Row{"stat_missing_again", "stat of a missing name again", "none", Kernel::knows,
            [](const Place& place) { EXPECT_EQ(access((place / "f").c_str(), F_OK), -1); },
            [](const Place& place) { EXPECT_EQ(access((place / "f").c_str(), F_OK), -1); }},
        Row{"list_cold", "listing a directory of three, cold", "LOOKUP, 2 READDIRPLUS",
            Kernel::has_forgotten, make_three, list_d},
        Row{"list_again", "listing it again", "none", Kernel::knows,
            [](const Place& place) {
              make_three(place);
              list_d(place);
              list_d(place);
            },
            list_d},
        Row{"mkdir", "mkdir", "LOOKUP, MKDIR", Kernel::knows, nothing,
            [](const Place& place) { ok(mkdir((place / "d").c_str(), 0755)); }},
        Row{"rmdir", "rmdir", "RMDIR", Kernel::knows,
            [](const Place& place) { ok(mkdir((place / "d").c_str(), 0755)); },
            [](const Place& place) { ok(rmdir((place / "d").c_str())); }},
        Row{"rename", "rename", "LOOKUP, SETATTR, RENAME", Kernel::knows, make_file,
            [](const Place& place) { ok(rename((place / "f").c_str(), (place / "g").c_str())); }},
        Row{"rename_over", "rename over a file", "LOOKUP, 2 SETATTR, RENAME", Kernel::knows,
            [](const Place& place) {
              make_file(place);
              put(place / "g", "old");
            },
            [](const Place& place) { ok(rename((place / "f").c_str(), (place / "g").c_str())); }},
        Row{"unlink", "unlink", "SETATTR, UNLINK", Kernel::knows, make_file,
            [](const Place& place) { ok(unlink((place / "f").c_str())); }},
        Row{"symlink", "symlink, readlink", "LOOKUP, GETATTR, SYMLINK, READLINK", Kernel::knows,
            nothing,
            [](const Place& place) {
              ok(symlink("target", (place / "l").c_str()));
              std::array<char, 16> target;
              EXPECT_EQ(readlink((place / "l").c_str(), target.data(), target.size()), 6);
            }},
        Row{"readlink_again", "readlink again", "none", Kernel::knows,
            [](const Place& place) {
              ok(symlink("target", (place / "l").c_str()));
              std::array<char, 16> target;
              ok(readlink((place / "l").c_str(), target.data(), target.size()));
            },
            [](const Place& place) {
              std::array<char, 16> target;
              EXPECT_EQ(readlink((place / "l").c_str(), target.data(), target.size()), 6);
            }},
        Row{"link", "link", "LOOKUP, LINK, SETATTR", Kernel::knows, make_file,
            [](const Place& place) { ok(link((place / "f").c_str(), (place / "g").c_str())); }},
        Row{"chmod", "chmod", "SETATTR", Kernel::knows, make_file,
            [](const Place& place) { ok(chmod((place / "f").c_str(), 0600)); }},
        Row{"chown", "chown", "GETXATTR, SETATTR", Kernel::knows, make_file,
            [](const Place& place) { ok(chown((place / "f").c_str(), geteuid(), getegid())); }},
        Row{"utimensat", "utimensat", "SETATTR", Kernel::knows, make_file,
            [](const Place& place) {
              const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 2, .tv_nsec = 0}};
              ok(utimensat(AT_FDCWD, (place / "f").c_str(), times, 0));
            }},
        Row{"truncate", "truncate", "SETATTR", Kernel::knows, make_file,
            [](const Place& place) { ok(truncate((place / "f").c_str(), 3)); }},
        Row{"overwrite", "open with O_TRUNC, write, close", "GETXATTR, WRITE, SETATTR",
            Kernel::knows, make_file, make_file},
        Row{"append", "append, close", "WRITE, SETATTR", Kernel::knows, make_file,
            [](const Place& place) {
              const File file(place / "f", O_WRONLY | O_APPEND);
              ok(write(file, "more", 4));
            }},
        Row{"fsync", "write, fsync", "WRITE, SETATTR, FSYNC", Kernel::knows, make_file,
            [](const Place& place) {
              const File file(place / "f", O_WRONLY);
              ok(write(file, "CONTENT", 7));
              ok(fsync(file));
            }},
        Row{"setxattr", "setxattr", "SETXATTR, SETATTR", Kernel::knows, make_file,
            [](const Place& place) { ok(setxattr((place / "f").c_str(), "user.a", "1", 1, 0)); }},
        Row{"getxattr", "getxattr", "GETXATTR", Kernel::knows,
            [](const Place& place) {
              make_file(place);
              ok(setxattr((place / "f").c_str(), "user.a", "1", 1, 0));
            },
            [](const Place& place) {
              char value;
              EXPECT_EQ(getxattr((place / "f").c_str(), "user.a", &value, 1), 1);
            }},
        Row{"listxattr", "listxattr", "LISTXATTR", Kernel::knows, make_file,
            [](const Place& place) {
              std::array<char, 256> names;
              ok(listxattr((place / "f").c_str(), names.data(), names.size()));
            }},
        Row{"remove_tree", "rm -rf of a directory of three",
            "3 GETATTR, 3 SETATTR, 3 UNLINK, RMDIR, 2 READDIRPLUS", Kernel::knows, make_three,
            [](const Place& place) { EXPECT_EQ(std::filesystem::remove_all(place / "d"), 4u); }},
        Row{"copy_range", "cp of 3 MiB (copy_file_range)",
            "LOOKUP, CREATE, GETXATTR, COPY_FILE_RANGE, SETATTR", Kernel::knows, make_large,
            [](const Place& place) {
              const File from(place / "f", O_RDONLY);
              const File to(place / "g", O_WRONLY | O_CREAT | O_EXCL);
              while (copy_file_range(from, nullptr, to, nullptr, large_file_bytes, 0) > 0) {
              }
            }},
        Row{"copy_bytes", "cp of 3 MiB (read, write, close)",
            "LOOKUP, CREATE, GETXATTR, 3 WRITE, SETATTR", Kernel::knows, make_large,
            [](const Place& place) {
              const File from(place / "f", O_RDONLY);
              const File to(place / "g", O_WRONLY | O_CREAT | O_EXCL);
              std::string buffer(128u << 10, 0);
              while (const ssize_t count = read(from, buffer.data(), buffer.size())) {
                ASSERT_GT(count, 0);
                ASSERT_EQ(write(to, buffer.data(), static_cast<std::size_t>(count)), count);
              }
            }},
};

class FuseMessageTable : public FuseMount, public ::testing::WithParamInterface<Row> {
 protected:
  // The real volume, since the table is about what programs meet.
  Result<VolumeUnderTest> make_volume() const override { return make_real_volume_under_test(); }
  void SetUp() override {
    FuseMount::SetUp();
    if (session_) settle();
  }
  // The kernel forgets everything, as after another mount of the volume.
  void mount_again() {
    end();
    session_.reset();
    folder_.reset();  // or the next one's janitor keeps its pipe open
    ASSERT_NO_FATAL_FAILURE(mount());
    settle();
  }
  // Asks what the kernel asks once a mount: whether there is an OPEN, what the root is.
  void settle() {
    put(path("asked"), "once");
    EXPECT_EQ(get(path("asked")), "once");
    list(Place(mount_point_));
    EXPECT_EQ(getxattr(path("asked").c_str(), "user.none", nullptr, 0), -1);
    unlink(path("asked").c_str());
  }
  Counts counts() const {
    Counts counts;
    const auto all = session_->opcode_counts();
    for (std::uint32_t opcode = 0; opcode < all.size(); ++opcode) {
      if (all[opcode] > 0) counts[opcode] = all[opcode];
    }
    for (const std::uint32_t opcode : uncounted)
      counts.erase(opcode);
    return counts;
  }
  std::string messages_of(const std::function<void()>& act) {
    const Counts before = counts();
    act();
    Counts after = counts();
    for (const auto& [opcode, count] : before)
      after[opcode] -= count;
    return words_of(after);
  }
};

TEST_P(FuseMessageTable, costs) {
  const Row& row = GetParam();
  constexpr int attempts_max = 20;
  std::string messages;
  for (int attempt = 0; attempt < attempts_max && messages != row.messages; ++attempt) {
    const std::string name = "attempt" + std::to_string(attempt);
    ASSERT_EQ(mkdir(path(name).c_str(), 0755), 0);
    row.prepare(Place(path(name)));
    // Times of the kernel's clock, which ticks every 1 to 10 ms, differ from those before.
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    if (row.kernel == Kernel::has_forgotten) {
      ASSERT_NO_FATAL_FAILURE(mount_again());
    }
    stat_of(path(name));  // so that the calls of the row need not ask for it
    messages = messages_of([&] { row.act(Place(path(name))); });
  }
  EXPECT_EQ(messages, row.messages) << row.operation;
}

// The first two cells of each row of the section's table, heads left out.
std::vector<std::pair<std::string, std::string>> documented_rows() {
  const std::string path = source_folder() + "/docs/KERNEL.md";
  std::ifstream document(path);
  EXPECT_TRUE(document) << path;
  std::vector<std::pair<std::string, std::string>> found;
  bool is_inside = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## ")) is_inside = line == "## Messages";
    if (!is_inside || !line.starts_with("| ") || line.starts_with("| system calls")) continue;
    const std::size_t second = line.find(" | ", 2);
    const std::size_t third = line.find(" | ", second + 3);
    if (second == std::string::npos || third == std::string::npos) {
      ADD_FAILURE() << line;
      continue;
    }
    found.emplace_back(line.substr(2, second - 2), line.substr(second + 3, third - second - 3));
  }
  return found;
}

TEST(FuseMessageDocument, says_what_is_counted) {
  const auto documented = documented_rows();
  for (std::size_t i = 0; i < std::min(documented.size(), rows.size()); ++i) {
    EXPECT_EQ(documented[i].first, rows[i].operation);
    EXPECT_EQ(documented[i].second, rows[i].messages) << rows[i].operation;
  }
  EXPECT_EQ(documented.size(), rows.size());
}

INSTANTIATE_TEST_SUITE_P(Fuse, FuseMessageTable, ::testing::ValuesIn(rows),
                         [](const auto& row) { return row.param.test; });

}  // namespace

}  // namespace nacre::tests
