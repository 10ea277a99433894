// SPDX-License-Identifier: Apache-2.0
// The control socket: what it answers, and what it does when a client is hostile.
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "tests/support/patience.h"
#include "tests/tools/control_fixture.h"

namespace nacre::fs {
namespace {

TEST_F(Control, the_socket_is_its_owners_alone) {
  struct stat status {};
  ASSERT_EQ(::lstat(server_->socket_path().c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto parent = std::filesystem::path(server_->socket_path()).parent_path();
  ASSERT_EQ(::lstat(parent.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(Control, info_names_the_mount_and_its_process) {
  const auto info = ask("info");
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ((*info)["volume"], "/srv/volume");
  EXPECT_EQ((*info)["mountpoint"], "/mnt/volume");
  EXPECT_EQ((*info)["pid"], ::getpid());
}

TEST(Message, deep_nesting_is_refused) {
  const auto nested = [](int depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_TRUE(parse_message(nested(json_depth_max)));
  EXPECT_FALSE(parse_message(nested(json_depth_max + 1)));
  EXPECT_FALSE(parse_message(nested(100000)));
  EXPECT_FALSE(is_shallow(std::string(json_depth_max + 1, '{')));
  // Lists one after the other, and brackets within strings, are no nesting.
  std::string flat;
  for (int i = 0; i < 1000; ++i)
    flat += "[],{}";
  EXPECT_TRUE(is_shallow(flat));
  EXPECT_TRUE(is_shallow("[\"\\\"" + std::string(1000, '[') + "\\\\\"]"));
  EXPECT_FALSE(is_shallow("[\"\\\\\"" + std::string(1000, '[')));
}

TEST_F(Control, stats_come_from_the_volume) {
  const auto reply = ask("stats");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ((*reply)["stats"]["inode_count"], 42);
}

TEST_F(Control, stats_have_histograms_only_where_they_are_asked_for) {
  LogHistogram latency;
  for (const std::uint64_t ns : {100, 100, 5000})
    latency.record(ns);
  volume_.requests.operations.push_back(
      {.name = "read", .error_count = 1, .latency_ns = latency.counts()});
  volume_.requests.errors = {{"EIO", 1}};
  const auto plain = send_raw("{\"command\":\"stats\"}\n")["stats"]["requests"];
  EXPECT_EQ(plain["operations"]["read"]["count"], 3);
  EXPECT_EQ(plain["operations"]["read"]["max_ns"], 5000);
  EXPECT_EQ(plain["errors"]["EIO"], 1);
  EXPECT_FALSE(plain["operations"]["read"].contains("buckets"));
  const auto full = send_raw("{\"command\":\"stats\",\"histograms\":true}\n")["stats"];
  const nlohmann::json buckets = {{histogram_bucket_of(100), 2}, {histogram_bucket_of(5000), 1}};
  EXPECT_EQ(full["requests"]["operations"]["read"]["buckets"], buckets);
}

// The largest that there can be: a reply that were too long would be no reply at all.
TEST_F(Control, histograms_never_outgrow_a_reply) {
  HistogramCounts full;
  full.buckets.assign(histogram_bucket_count, UINT64_MAX / 1000);
  full.count = full.sum = full.max = UINT64_MAX;
  for (std::size_t i = 0; i < RequestMetrics::operation_count; ++i) {
    volume_.requests.operations.push_back(
        {.name = "operation" + std::to_string(i), .error_count = UINT64_MAX, .latency_ns = full});
  }
  const auto reply = send_raw("{\"command\":\"stats\",\"histograms\":true}\n");
  EXPECT_EQ(reply["ok"], true);
  EXPECT_EQ(reply["stats"]["requests"]["operations"].size(), RequestMetrics::operation_count);
}

TEST_F(Control, file_tells_chunks_by_inode_and_goes_on_where_it_is_told) {
  volume_.file_chunks.chunks = {
      {.first = metadata::ChunkIndex{3},
       .content_size = 500,
       .pieces = {{.plain_size = 400,
                   .location = metadata::RecordLocation{metadata::SegmentNumber{7}, 64, 200},
                   .codec = engine::Codec::zstd,
                   .epoch = 2},
                  {.offset = 450, .plain_size = 50},
                  {.plain_size = 1,
                   .location = metadata::RecordLocation{metadata::SegmentNumber{8}, 9, 90},
                   .result = fail(ErrorCode::tampered, "why")}}},
      {.first = metadata::ChunkIndex{4}, .count = 9, .kind = FileChunkKind::hole}};
  volume_.file_chunks.next = metadata::ChunkIndex{13};
  const auto file = send_raw("{\"command\":\"file\",\"inode\":5,\"first_chunk\":3}\n")["file"];
  EXPECT_EQ(volume_.last_look.first.value, 5u);
  EXPECT_EQ(volume_.last_look.second.value, 3u);
  EXPECT_EQ(file["next_chunk"], 13);
  ASSERT_EQ(file["chunks"].size(), 2u);
  const auto& pieces = file["chunks"][0]["pieces"];
  EXPECT_EQ(pieces[0]["codec"], "zstd");
  EXPECT_EQ(pieces[0]["epoch"], 2);
  EXPECT_EQ(pieces[0]["segment"], 7);
  EXPECT_EQ(pieces[1]["inlined"], true);
  EXPECT_EQ(pieces[2]["damage"], "tampered");
  EXPECT_FALSE(pieces[2].contains("codec"));
  EXPECT_EQ(file["chunks"][1]["kind"], "hole");
  EXPECT_EQ(file["chunks"][1]["chunk_count"], 9);
  for (const char* bad : {"{\"command\":\"file\"}\n", "{\"command\":\"file\",\"inode\":-1}\n",
                          "{\"command\":\"file\",\"inode\":\"/etc\"}\n"}) {
    EXPECT_EQ(send_raw(bad)["error"]["code"], to_string(ErrorCode::invalid_argument)) << bad;
  }
}

TEST_F(Control, trim_tells_what_came_of_it_or_why_not) {
  const auto reply = ask("trim");
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)["trim"]["segment_count"], 3);
  EXPECT_EQ((*reply)["trim"]["moved_bytes"], 4);
  EXPECT_EQ((*reply)["trim"]["freed_bytes"], 5);
  volume_.trim_result = fail(ErrorCode::no_space, "full");
  const auto refused = ask("trim");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::no_space);
}

TEST_F(Control, backup_lists_files_and_holds_them_as_long_as_the_connection_is_open) {
  for (std::uint64_t i = 0; i < 5000; ++i)
    volume_.backup_files.push_back({.path = "segments/" + std::to_string(i), .size = i << 32});
  {
    auto client = ControlClient::connect(mount_);
    ASSERT_TRUE(client);
    const auto snapshot = client->begin_backup();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    EXPECT_EQ(snapshot->files, volume_.backup_files);
    EXPECT_EQ(snapshot->current, (Bytes{1, 2, 255}));
    EXPECT_TRUE(ask("stats"));
    EXPECT_EQ(volume_.hold_count, 1);
  }
  while (volume_.hold_count > 0)
    std::this_thread::yield();
}

TEST_F(Control, a_backup_whose_files_were_given_up_is_told) {
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->begin_backup());
  EXPECT_TRUE(client->check_backup({}));
  volume_.hold.given_up = true;
  const auto told = client->check_backup(patience);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ErrorCode::no_space);
  EXPECT_NE(told.error().message.find("/srv/volume: its disk is full"), std::string::npos)
      << told.error().message;
  while (volume_.hold_count > 0)
    std::this_thread::yield();
  EXPECT_TRUE(client->check_backup({})) << "what was said is not said again";
}

TEST_F(Control, a_daemon_that_ended_holds_no_backup_and_removes_nothing) {
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->begin_backup());
  server_->begin_closing();
  EXPECT_TRUE(client->check_backup(patience));
}

TEST_F(Control, backup_tells_why_it_cannot_be) {
  volume_.backup_result = fail(ErrorCode::busy, "there are four already");
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client);
  const auto refused = client->begin_backup();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
}

TEST_F(Control, closing_lets_go_of_what_backups_hold) {
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->begin_backup());
  EXPECT_EQ(volume_.hold_count, 1);
  server_->begin_closing();
  EXPECT_EQ(volume_.hold_count, 0);
}

TEST_F(Control, a_client_that_does_not_take_its_list_is_not_waited_for) {
  for (std::uint64_t i = 0; i < 100'000; ++i)
    volume_.backup_files.push_back({.path = "segments/" + std::to_string(i), .size = i});
  const int socket = connect_raw();
  constexpr std::string_view request = "{\"command\":\"backup\"}\n";
  ASSERT_EQ(::send(socket, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  while (volume_.hold_count == 0)
    std::this_thread::yield();
  while (volume_.hold_count > 0)
    std::this_thread::yield();
  ::close(socket);
}

TEST_F(Control, sync_returns_after_the_volume_has_and_with_its_error) {
  EXPECT_TRUE(ask("sync"));
  EXPECT_EQ(volume_.sync_count, 1);
  volume_.sync_result = fail(ErrorCode::no_space, "the disk is full");
  const auto failed = ask("sync");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::no_space);
  EXPECT_EQ(failed.error().message, "the disk is full");
}

TEST_F(Control, a_sync_that_takes_long_keeps_nobody_else_waiting) {
  volume_.set_open(false);
  std::thread slow([&] { EXPECT_TRUE(ask("sync")); });
  while (volume_.sync_count == 0)
    std::this_thread::yield();
  EXPECT_TRUE(ask("stats"));
  EXPECT_TRUE(ask("info"));
  volume_.set_open(true);
  slow.join();
}

TEST_F(Control, who_prepares_to_unmount_hears_how_it_ended) {
  auto good = ControlClient::connect(mount_);
  ASSERT_TRUE(good);
  ASSERT_TRUE(good->request("prepare_unmount"));
  EXPECT_EQ(volume_.sync_count, 1);
  server_->begin_closing();
  EXPECT_FALSE(std::filesystem::exists(server_->socket_path()));
  server_->finish(fail(ErrorCode::io, "the last commit failed"));
  const auto closed = good->wait_until_closed(patience);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::io);
  EXPECT_EQ(closed.error().message, "the last commit failed");
}

std::size_t count_sockets() {
  std::size_t count = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    count += std::filesystem::read_symlink(file, error).string().starts_with("socket:") ? 1u : 0u;
  return count;
}

TEST_F(Control, clients_that_gave_unmounting_up_leave_nothing_behind) {
  const std::size_t before = count_sockets();
  for (std::size_t i = 0; i < 3 * closing_waiter_count_max; ++i) {
    auto client = ControlClient::connect(mount_);
    ASSERT_TRUE(client);
    ASSERT_TRUE(client->request("prepare_unmount"));
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (count_sockets() > before && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(count_sockets(), before);
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->request("prepare_unmount"));
  server_->begin_closing();
  server_->finish({});
  EXPECT_TRUE(client->wait_until_closed(patience));
}

TEST_F(Control, a_daemon_that_dies_is_not_taken_for_a_success) {
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->request("prepare_unmount"));
  server_.reset();
  const auto closed = client->wait_until_closed(patience);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::stale);
  const auto gone = ControlClient::connect(mount_);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::stale);
}

TEST_F(Control, garbage_gets_an_error_and_nothing_else) {
  for (const std::string_view bytes :
       {"\n", "garbage\n", "[]\n", "{\n", "{}\n", "{\"command\":7}\n", "{\"command\":null}\n",
        "{\"command\":\"format\"}\n", "\xff\xfe\xfd\n", "{\"command\":\"\xff\"}\n",
        "{\"command\":\"sync\"} {\"command\":\"sync\"}\n"}) {
    const auto reply = send_raw(bytes);
    EXPECT_EQ(reply["ok"], false) << bytes;
    EXPECT_TRUE(reply["error"]["message"].is_string()) << bytes;
  }
  const auto unfinished = send_raw("{\"command\":\"inf");
  EXPECT_EQ(unfinished["ok"], false);
  EXPECT_EQ(volume_.sync_count, 0);
  EXPECT_TRUE(ask("info"));
}

TEST_F(Control, a_request_that_is_too_long_is_refused) {
  EXPECT_EQ(send_raw(std::string(request_size_bytes_max + 1, ' '))["error"]["code"], "too big");
  EXPECT_EQ(send_raw(std::string(64 << 10, '['))["error"]["code"], "too big");
  EXPECT_TRUE(ask("info"));
}

TEST_F(Control, silent_clients_do_not_keep_others_out_for_long) {
  std::vector<int> silent;
  for (std::size_t i = 0; i < 2 * control_connection_count_max; ++i) {
    silent.push_back(connect_raw());
  }
  Result<nlohmann::json> info;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  do {
    info = ask("info");
    if (info) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (std::chrono::steady_clock::now() < deadline);
  EXPECT_TRUE(info) << info.error().message;
  for (const int socket : silent)
    ::close(socket);
}

TEST_F(Control, clients_that_hang_up_at_once_do_no_harm) {
  for (int i = 0; i < 200; ++i) {
    const int socket = connect_raw();
    if (i % 2 == 0) static_cast<void>(!::send(socket, "{\"command\":\"info\"}\n", 19, 0));
    ::close(socket);
  }
  Result<nlohmann::json> info = ask("info");
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!info && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    info = ask("info");
  }
  EXPECT_TRUE(info) << info.error().message;
}

TEST_F(Control, closing_waits_for_a_running_sync) {
  volume_.set_open(false);
  std::thread slow([&] { EXPECT_TRUE(ask("sync")); });
  while (volume_.sync_count == 0)
    std::this_thread::yield();
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    server_->begin_closing();
    closed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(closed);
  volume_.set_open(true);
  closer.join();
  slow.join();
}

TEST_F(Control, a_later_mount_of_the_same_number_keeps_its_socket) {
  auto later = ControlServer::start(description_, volume_);
  ASSERT_TRUE(later) << later.error().message;
  server_->begin_closing();
  EXPECT_TRUE(ask("info"));
  later->reset();
  EXPECT_FALSE(ask("info"));
}

// Runs body as another user in a process of its own; true when it returned true.
template <typename Body>
bool as_user(uid_t user, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool switched = ::setgid(user) == 0 && ::setuid(user) == 0;
    ::_exit(switched && body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ControlUsers, another_user_is_refused_even_where_the_socket_is_open_to_all) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become two users";
  constexpr uid_t owner = 12399, other = 12398;
  std::string pattern = "/tmp/nacre-control.XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  ASSERT_EQ(::chown(folder.c_str(), owner, owner), 0);
  int ready[2], stop[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(stop), 0);
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    ::close(stop[1]);
    if (::setgid(owner) != 0 || ::setuid(owner) != 0) ::_exit(1);
    ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    FakeVolume volume;
    MountDescription description;
    description.device_major = 4000;
    description.device_minor = 1;
    description.volume_directory = folder;  // a socket there keeps it from making one in /tmp
    auto server = ControlServer::start(description, volume);
    static_cast<void>(!::write(ready[1], server ? "+" : "-", 1));
    char byte = 0;
    static_cast<void>(!::read(stop[0], &byte, 1));
    if (server) server->reset();
    ::_exit(0);
  }
  char answer = '-';
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, '+');
  const auto socket_path = folder / "nacre/4000-1.sock";
  const auto ask = [&](uid_t mount_owner) {
    ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    MountEntry mount;
    mount.device_major = 4000;
    mount.device_minor = 1;
    mount.owner = mount_owner;
    auto client = ControlClient::connect(mount);
    return client ? client->request("info") : tl::unexpected(client.error());
  };
  EXPECT_TRUE(as_user(owner, [&] { return ask(owner).has_value(); }));
  EXPECT_TRUE(as_user(0, [&] { return ask(owner).has_value(); }));
  // The client sees from the mount table that it is not its own.
  EXPECT_TRUE(as_user(other, [&] {
    const auto info = ask(owner);
    return !info && info.error().code == ErrorCode::not_permitted;
  }));
  // Past the client's checks and the file's mode, the server still looks at who it is.
  ASSERT_EQ(::chmod(socket_path.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(socket_path.parent_path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_TRUE(as_user(other, [&] {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
    const auto line = read_line(socket, reply_size_bytes_max, patience);
    if (!line) return false;
    const auto reply = parse_message(*line);
    return reply && (*reply)["error"]["code"] == "not permitted";
  }));
  ::close(stop[1]);
  ::waitpid(daemon, nullptr, 0);
  for (const int descriptor : {ready[0], ready[1], stop[0]})
    ::close(descriptor);
  std::filesystem::remove_all(folder);
}

TEST(ControlFolder, a_runtime_folder_of_somebody_else_is_not_used) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t owner = 12399;
  const std::filesystem::path trap = "/tmp/nacre-12399";
  if (std::filesystem::exists(trap)) GTEST_SKIP() << trap << " is in use";
  // Made by root, not by the user whose name it bears.
  ASSERT_TRUE(std::filesystem::create_directory(trap));
  EXPECT_TRUE(as_user(owner, [] {
    ::unsetenv("XDG_RUNTIME_DIR");
    const auto folder = SocketFolder::make_own();
    return !folder && folder.error().code == ErrorCode::not_permitted;
  }));
  std::filesystem::remove(trap);
  std::filesystem::create_symlink("/tmp", trap);
  EXPECT_TRUE(as_user(owner, [] {
    ::unsetenv("XDG_RUNTIME_DIR");
    const auto folder = SocketFolder::make_own();
    return !folder && folder.error().code == ErrorCode::not_permitted;
  }));
  std::filesystem::remove(trap);
}

TEST(MountTable, reads_what_the_kernel_writes) {
  const auto table = parse_mount_table(
      "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
      "99 27 0:45 / /mnt/a\\040b rw,nosuid - fuse.nacre /srv/v\\134x rw,user_id=1000,group_id=7\n"
      "100 27 0:46 / /mnt/ro ro,relatime shared:1 master:2 - fuse.nacre v rw,user_id=0\n"
      "101 27 0:47 / /mnt/no-source rw - fuse.nacre\n"
      "not a line\n102 27 x:y / /m rw - t s o\n\n");
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[1].mountpoint, "/mnt/a b");
  EXPECT_EQ(table[1].type, "fuse.nacre");
  EXPECT_EQ(table[1].source, "/srv/v\\x");
  EXPECT_EQ(table[1].device_minor, 45u);
  EXPECT_EQ(table[1].owner, 1000u);
  EXPECT_FALSE(table[1].read_only);
  EXPECT_TRUE(table[2].read_only);
  EXPECT_EQ(table[2].owner, 0u);
}

TEST(MountTable, says_what_is_not_a_nacre_mount) {
  const auto nothing = find_nacre_mount("/tmp");
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::not_found);
  EXPECT_NE(nothing.error().message.find("is not a Nacre mount"), std::string::npos);
  const auto other = find_nacre_mount("/proc/");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("of type proc"), std::string::npos);
  const auto absent = find_nacre_mount("/nowhere/at/all");
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("No such file"), std::string::npos);
}

TEST(MountTable, makes_paths_absolute_without_looking) {
  EXPECT_EQ(absolute_path("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(absolute_path("/../.."), "/");
  EXPECT_EQ(absolute_path("x"), std::filesystem::current_path().string() + "/x");
}

}  // namespace
}  // namespace nacre::fs
