// SPDX-License-Identifier: Apache-2.0
// A control socket over a volume that only notes its requests.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fs/check/finding.h"
#include "fs/control/control_client.h"
#include "fs/control/control_server.h"
#include "fs/control/message.h"
#include "fs/control/mount_table.h"
#include "tests/support/error_of.h"
#include "tests/support/patience.h"

namespace nacre::fs {

using tests::patience;

class FakeVolume final : public ControlHandler {
 public:
  Result<> sync() override {
    ++sync_count;
    std::unique_lock lock(mutex);
    gate.wait(lock, [&] { return open; });
    return sync_result;
  }
  Result<FileChunks> look_at_file(metadata::InodeNumber inode,
                                  metadata::ChunkIndex first) override {
    last_look = {inode, first};
    return file_chunks;
  }
  Result<std::vector<LogMessage>> messages_after(std::uint64_t number) override {
    return messages.after(number);
  }
  RecentMessages messages;
  std::pair<metadata::InodeNumber, metadata::ChunkIndex> last_look;
  FileChunks file_chunks;
  Result<CompactionReport> trim() override {
    if (!trim_result) return tl::unexpected(trim_result.error());
    return CompactionReport{.segment_count = 3, .moved_bytes = 4, .freed_bytes = 5};
  }
  Result<metadata::ScrubRow> scrub(ScrubCommand command,
                                   std::optional<std::uint64_t> rate) override {
    if (!scrub_result) return tl::unexpected(scrub_result.error());
    if (command != ScrubCommand::status) last_scrub = {command, rate};
    return scrub_row;
  }
  Result<> scrub_result = {};
  metadata::ScrubRow scrub_row;
  std::pair<ScrubCommand, std::optional<std::uint64_t>> last_scrub = {ScrubCommand::status, {}};
  Result<BackupSnapshot> begin_backup() override {
    if (!backup_result) return tl::unexpected(backup_result.error());
    ++hold_count;
    return BackupSnapshot{.files = backup_files,
                          .current = {1, 2, 255},
                          .hold = std::shared_ptr<const BackupHold>(
                              &hold, [this](const BackupHold*) { --hold_count; })};
  }
  std::uint64_t keyring_generation() override { return 7; }
  Result<> replace_recipients(std::string_view text) override {
    keyring = text;
    return keyring_result;
  }
  std::string keyring;
  Result<> keyring_result = {};
  Result<> trim_result = {};
  Result<> backup_result = {};
  std::vector<BackupFile> backup_files;
  struct Hold final : BackupHold {
    bool is_given_up() const override { return given_up; }
    std::atomic<bool> given_up{false};
  } hold;
  std::atomic<int> hold_count{0};
  VolumeStats stats() override {
    VolumeStats stats;
    stats.inode_count = 42;
    stats.health = "ok";
    return stats;
  }
  RequestStats request_stats() override { return requests; }
  RequestStats requests;
  void set_open(bool value) {
    {
      const std::lock_guard lock(mutex);
      open = value;
    }
    gate.notify_all();
  }

  std::atomic<int> sync_count{0};
  Result<> sync_result = {};
  std::mutex mutex;
  std::condition_variable gate;
  bool open = true;
};

class Control : public testing::Test {
 protected:
  Control() {
    std::string pattern = "/tmp/nacre-control.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    // No mount has this number.
    description_.device_major = 4000;
    description_.device_minor = static_cast<unsigned>(::getpid());
    description_.volume_directory = "/srv/volume";
    description_.mountpoint = "/mnt/volume";
    mount_.device_major = description_.device_major;
    mount_.device_minor = description_.device_minor;
    mount_.mountpoint = description_.mountpoint;
    mount_.owner = ::geteuid();
    auto server = ControlServer::start(description_, volume_);
    EXPECT_TRUE(server) << server.error().message;
    if (server) server_ = std::move(*server);
  }
  ~Control() override {
    volume_.set_open(true);
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  int connect_raw() const {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = server_->socket_path();
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  // Sends exactly these bytes, and returns the reply of the server.
  nlohmann::json send_raw(std::string_view bytes) const {
    const int socket = connect_raw();
    static_cast<void>(!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    ::shutdown(socket, SHUT_WR);
    const auto line = read_line(socket, reply_size_bytes_max, patience);
    ::close(socket);
    EXPECT_TRUE(line) << line.error().message;
    return line ? parse_message(*line).value_or(nlohmann::json()) : nlohmann::json();
  }
  Result<nlohmann::json> ask(std::string_view command) const {
    NACRE_ASSIGN(auto client, ControlClient::connect(mount_));
    return client.request(command);
  }

  std::filesystem::path folder_;
  FakeVolume volume_;
  MountDescription description_;
  MountEntry mount_;
  std::unique_ptr<ControlServer> server_;
};

}  // namespace nacre::fs
