// SPDX-License-Identifier: Apache-2.0
// What the control socket asks of a mount.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "fs/control/control_server.h"
#include "fs/fuse/fuse_session.h"
#include "tools/mount/lockable_volume.h"

namespace nacre::tools {

// Thread-safe, as the parts are. They outlive it.
class MountControl final : public fs::ControlHandler {
 public:
  MountControl(LockableVolume& volume, fs::FuseSession& session,
               const std::atomic<bool>& is_sandboxed)
      : volume_(volume), session_(session), is_sandboxed_(is_sandboxed) {}

  Result<std::shared_ptr<const void>> begin_command() override;
  bool is_locked() override { return volume_.is_locked(); }
  Result<bool> lock() override { return volume_.lock(); }
  Result<bool> unlock(ByteView volume_key) override { return volume_.unlock(volume_key); }

  Result<> sync() override;
  fs::VolumeStats stats() override { return mounted().stats(); }
  fs::RequestStats request_stats() override { return session_.request_stats(); }
  Result<fs::FileChunks> look_at_file(metadata::InodeNumber inode,
                                      metadata::ChunkIndex first) override {
    return fs::look_at_chunks(mounted().database(), mounted().store(), inode, first);
  }
  std::string transport() override { return session_.transport_name(); }
  std::string sandbox() override { return is_sandboxed_ ? "seccomp" : "off"; }
  Result<std::vector<fs::LogMessage>> messages_after(std::uint64_t number) override;
  Result<fs::CompactionReport> trim() override {
    return mounted().compact(fs::CompactionGoal::everything, {});
  }
  Result<metadata::ScrubRow> scrub(fs::ScrubCommand command,
                                   std::optional<std::uint64_t> rate) override {
    return volume_.opened().scrubber().apply(command, rate);
  }
  // The backup includes what the kernel has sent so far.
  Result<fs::BackupSnapshot> begin_backup() override;
  std::uint64_t keyring_generation() override { return volume_.keyring_generation(); }
  Result<> replace_recipients(std::string_view text) override;
  fs::Rotation* rotation() override { return &volume_.opened().rotation(); }

 private:
  std::uint64_t write_count() const { return session_.opcode_counts()[FUSE_WRITE]; }
  fs::Mounted& mounted() { return volume_.opened().mounted(); }
  LockableVolume& volume_;
  fs::FuseSession& session_;
  const std::atomic<bool>& is_sandboxed_;
};

}  // namespace nacre::tools
