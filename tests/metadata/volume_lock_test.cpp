// SPDX-License-Identifier: Apache-2.0
// One writer or any number of readers, and messages that name the right holder.
#include "metadata/backing/volume_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/temporary_directory.h"

namespace nacre::metadata {
namespace {

using tests::TemporaryDirectory;

constexpr LockRequest writer{.mode = LockMode::exclusive, .mountpoint = {}};
constexpr LockRequest reader{.mode = LockMode::shared, .mountpoint = {}};

std::string content_of(const TemporaryDirectory& volume) {
  std::ifstream file(volume.path("lock"));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(VolumeLock, a_second_writer_is_told_who_holds_it) {
  TemporaryDirectory volume;
  const auto first =
      VolumeLock::acquire(volume.path(), {.mode = LockMode::exclusive, .mountpoint = "/mnt/\x01x"});
  ASSERT_TRUE(first) << first.error().message;
  for (const LockRequest& request : {writer, reader}) {
    const auto second = VolumeLock::acquire(volume.path(), request);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::busy);
    const std::string& message = second.error().message;
    EXPECT_NE(message.find("already mounted at /mnt/\\x01x by process " + std::to_string(getpid())),
              std::string::npos)
        << message;
    EXPECT_NE(message.find(" since 2"), std::string::npos) << message;
  }
}

TEST(VolumeLock, of_a_file_that_somebody_removed_still_keeps_others_away) {
  TemporaryDirectory volume;
  auto first = VolumeLock::acquire(volume.path(), writer);
  ASSERT_TRUE(first) << first.error().message;
  std::filesystem::remove(volume.path("lock"));
  for (const LockRequest& request : {writer, reader}) {
    const auto second = VolumeLock::acquire(volume.path(), request);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::busy);
    EXPECT_NE(second.error().message.find("removed or replaced"), std::string::npos)
        << second.error().message;
  }
  *first = VolumeLock::acquire(TemporaryDirectory().path(), reader).value();
  EXPECT_TRUE(VolumeLock::acquire(volume.path(), writer));
}

TEST(VolumeLock, goes_with_its_object) {
  TemporaryDirectory volume;
  ASSERT_TRUE(VolumeLock::acquire(volume.path(), writer));
  EXPECT_EQ(content_of(volume), "");
  auto second = VolumeLock::acquire(volume.path(), writer);
  ASSERT_TRUE(second);
  VolumeLock moved = std::move(*second);
  EXPECT_TRUE(moved.is_held());
  EXPECT_EQ(VolumeLock::acquire(volume.path(), writer).error().code, ErrorCode::busy);
  moved = VolumeLock::acquire(TemporaryDirectory().path(), reader).value();
  EXPECT_TRUE(VolumeLock::acquire(volume.path(), writer));
}

TEST(VolumeLock, readers_share_it_and_keep_a_writer_away) {
  TemporaryDirectory volume;
  std::ofstream(volume.path("lock")) << R"({"pid":1,"host":"gone","since":"then"})";
  const auto first = VolumeLock::acquire(volume.path(), reader);
  const auto second = VolumeLock::acquire(volume.path(), reader);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->is_held());
  const auto third = VolumeLock::acquire(volume.path(), writer);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::busy);
  EXPECT_NE(third.error().message.find("for reading"), std::string::npos);
  EXPECT_EQ(third.error().message.find("gone"), std::string::npos) << third.error().message;
}

TEST(VolumeLock, content_that_is_stale_or_rubbish_is_no_obstacle) {
  TemporaryDirectory volume;
  for (const char* content : {"", "rubbish", "[1]", R"({"pid":"x","host":5})",
                              R"({"pid":99999999,"host":"h","since":"s","mountpoint":"/m"})"}) {
    std::ofstream(volume.path("lock"), std::ios::trunc) << content;
    EXPECT_TRUE(VolumeLock::acquire(volume.path(), writer)) << content;
  }
}

TEST(VolumeLock, says_so_when_the_holder_cannot_be_named) {
  TemporaryDirectory volume;
  const auto held = VolumeLock::acquire(volume.path(), writer);
  std::ofstream(volume.path("lock"), std::ios::trunc) << "rubbish";
  const auto second = VolumeLock::acquire(volume.path(), writer);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_NE(second.error().message.find("does not say by whom"), std::string::npos);
}

TEST(VolumeLock, does_not_name_a_process_that_no_longer_runs_as_the_holder) {
  TemporaryDirectory volume;
  const pid_t child = fork();
  if (child == 0) {
    // Dies without a destructor, as by kill -9.
    _exit(VolumeLock::acquire(volume.path(), writer) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const std::string left_by_the_dead = content_of(volume);
  EXPECT_NE(left_by_the_dead.find(std::to_string(child)), std::string::npos);
  const auto held = VolumeLock::acquire(volume.path(), writer);
  ASSERT_TRUE(held);
  std::ofstream(volume.path("lock"), std::ios::trunc) << left_by_the_dead;
  EXPECT_NE(VolumeLock::acquire(volume.path(), writer).error().message.find("no longer runs"),
            std::string::npos);
}

TEST(VolumeLock, passes_from_a_command_to_its_daemon) {
  TemporaryDirectory volume;
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  pid_t daemon = 0;
  {
    auto lock = VolumeLock::acquire(volume.path(), writer);
    ASSERT_TRUE(lock);
    daemon = fork();
    if (daemon == 0) {
      close(done[1]);
      const bool announced = lock->announce("/mnt/daemon").has_value();
      static_cast<void>(!write(ready[1], announced ? "y" : "n", 1));
      char byte = 0;
      static_cast<void>(!read(done[0], &byte, 1));
      _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');
  }
  const auto second = VolumeLock::acquire(volume.path(), writer);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("/mnt/daemon by process " + std::to_string(daemon)),
            std::string::npos)
      << second.error().message;
  close(done[1]);
  int status = 0;
  ASSERT_EQ(waitpid(daemon, &status, 0), daemon);
  EXPECT_TRUE(VolumeLock::acquire(volume.path(), writer));
  for (const int end : {ready[0], ready[1], done[0]})
    close(end);
}

TEST(VolumeLock, waits_for_a_predecessor_that_is_finishing) {
  TemporaryDirectory volume;
  auto held = std::make_unique<VolumeLock>(VolumeLock::acquire(volume.path(), writer).value());
  std::jthread finisher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    held.reset();
  });
  LockRequest patient = writer;
  patient.wait_ms = 300'000;
  EXPECT_TRUE(VolumeLock::acquire(volume.path(), patient));
}

// A daemon that was killed within a sync: the process is no longer visible, but its files are still
// open.
TEST(VolumeLock, waits_for_a_holder_whose_last_threads_are_ending) {
  TemporaryDirectory volume;
  std::array<int, 2> ready = {};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = VolumeLock::acquire(volume.path(), writer);
    std::thread([&] {
      usleep(300'000);
      _exit(lock ? 0 : 1);
    }).detach();
    static_cast<void>(write(ready[1], "", 1));
    syscall(SYS_exit, 0);  // the first thread alone
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto is_zombie = [&] {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    return std::string(std::istreambuf_iterator<char>(file), {}).find(") Z") != std::string::npos;
  };
  while (!is_zombie())
    usleep(1000);
  EXPECT_TRUE(VolumeLock::acquire(volume.path(), writer));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(VolumeLock, gives_up_when_the_predecessor_stays) {
  TemporaryDirectory volume;
  const auto held = VolumeLock::acquire(volume.path(), writer);
  LockRequest patient = writer;
  patient.wait_ms = 50;
  EXPECT_EQ(VolumeLock::acquire(volume.path(), patient).error().code, ErrorCode::busy);
}

// Runs in a child process, so that only the child gives up root's rights.
TEST(VolumeLock, a_reader_goes_on_where_nothing_can_be_locked_and_a_writer_does_not) {
  TemporaryDirectory volume;
  ASSERT_EQ(chmod(volume.path().c_str(), 0555), 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (geteuid() == 0 && seteuid(nobody) != 0) _exit(1);
    const auto shared = VolumeLock::acquire(volume.path(), reader);
    if (!shared || shared->is_held()) _exit(2);
    const auto exclusive = VolumeLock::acquire(volume.path(), writer);
    _exit(exclusive || exclusive.error().code != ErrorCode::permission ? 3 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(VolumeLock, of_no_directory_says_so) {
  TemporaryDirectory parent;
  EXPECT_EQ(VolumeLock::acquire(parent.path("no"), writer).error().code, ErrorCode::not_found);
  EXPECT_EQ(VolumeLock::acquire(parent.path("no"), reader).error().code, ErrorCode::not_found);
}

TEST(VolumeLock, follows_no_symbolic_link) {
  TemporaryDirectory volume;
  ASSERT_EQ(symlink("/tmp/elsewhere", volume.path("lock").c_str()), 0);
  EXPECT_FALSE(VolumeLock::acquire(volume.path(), writer));
}

TEST(VolumeLock, writes_into_no_file_that_has_another_name) {
  TemporaryDirectory volume;
  TemporaryDirectory outside;
  const std::string victim = outside.path("victim");
  std::ofstream(victim) << "secret";
  ASSERT_EQ(link(victim.c_str(), volume.path("lock").c_str()), 0);
  const auto lock = VolumeLock::acquire(volume.path(), writer);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::not_permitted);
  EXPECT_NE(lock.error().message.find("hard link"), std::string::npos) << lock.error().message;
  EXPECT_EQ(std::filesystem::file_size(victim), 6u);
  ASSERT_EQ(unlink(victim.c_str()), 0);
  EXPECT_TRUE(VolumeLock::acquire(volume.path(), writer)) << "it has one name now";
}

}  // namespace
}  // namespace nacre::metadata
