// SPDX-License-Identifier: Apache-2.0
// What the control socket asks of a mount.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "fs/control/control_server.h"
#include "fs/fuse/fuse_session.h"
#include "fs/mount/mounted.h"
#include "fs/rotation/rotation.h"
#include "fs/scrub/scrubber.h"
#include "metadata/keys/keyring_keeper.h"

namespace nacre::tools {

// Thread-safe, as the parts are. They outlive it.
class MountControl final : public fs::ControlHandler {
 public:
  MountControl(fs::Mounted& mounted, metadata::KeyringKeeper& keyring, fs::Scrubber& scrubber,
               fs::Rotation& rotation, fs::FuseSession& session,
               const std::atomic<bool>& is_sandboxed)
      : mounted_(mounted),
        keyring_(keyring),
        scrubber_(scrubber),
        rotation_(rotation),
        session_(session),
        is_sandboxed_(is_sandboxed) {}

  Result<> sync() override;
  fs::VolumeStats stats() override { return mounted_.stats(); }
  fs::RequestStats request_stats() override { return session_.request_stats(); }
  Result<fs::FileChunks> look_at_file(metadata::InodeNumber inode,
                                      metadata::ChunkIndex first) override {
    return fs::look_at_chunks(mounted_.database(), mounted_.store(), inode, first);
  }
  std::string transport() override { return session_.transport_name(); }
  std::string sandbox() override { return is_sandboxed_ ? "seccomp" : "off"; }
  Result<std::vector<fs::LogMessage>> messages_after(std::uint64_t number) override;
  Result<fs::CompactionReport> trim() override {
    return mounted_.compact(fs::CompactionGoal::everything, {});
  }
  Result<metadata::ScrubRow> scrub(fs::ScrubCommand command,
                                   std::optional<std::uint64_t> rate) override {
    return scrubber_.apply(command, rate);
  }
  // The backup includes what the kernel has sent so far.
  Result<fs::BackupSnapshot> begin_backup() override;
  std::uint64_t keyring_generation() override { return keyring_.generation(); }
  Result<> replace_recipients(std::string_view text) override;
  fs::Rotation* rotation() override { return &rotation_; }

 private:
  std::uint64_t write_count() const { return session_.opcode_counts()[FUSE_WRITE]; }
  fs::Mounted& mounted_;
  metadata::KeyringKeeper& keyring_;
  fs::Scrubber& scrubber_;
  fs::Rotation& rotation_;
  fs::FuseSession& session_;
  const std::atomic<bool>& is_sandboxed_;
};

}  // namespace nacre::tools
