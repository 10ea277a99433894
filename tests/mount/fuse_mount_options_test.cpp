// SPDX-License-Identifier: Apache-2.0
// Parsing the options after -o.
#include <gtest/gtest.h>

#include "fs/fuse/mount_options.h"

namespace nacre::tests {

namespace {

struct Parsed {
  fs::FuseOptions fuse;
  fs::VolumeOptions volume;
  std::string error;
};

Parsed parse(std::string_view text) {
  Parsed parsed;
  if (const auto result = fs::parse_mount_options(text, parsed.fuse, parsed.volume); !result) {
    parsed.error = result.error().message;
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  }
  return parsed;
}

using Options = std::vector<std::string>;

TEST(MountOptions, nothing_changes_nothing) {
  const Parsed parsed = parse("");
  EXPECT_EQ(parsed.error, "");
  EXPECT_FALSE(parsed.fuse.read_only || parsed.fuse.allow_other || parsed.fuse.nonempty ||
               parsed.fuse.no_handles);
  EXPECT_EQ(parsed.volume.commit_interval_ms, 5000u);
  EXPECT_EQ(parsed.fuse.read_ahead_kib, 1024u);
}

TEST(MountOptions, switches_and_settings) {
  const Parsed parsed = parse(
      "ro,allow_other,nonempty,noxattr,nohandles,fsname=my volume,commit=30,cache=64M,dirty=1g,"
      "threads=3,readahead=256K");
  EXPECT_EQ(parsed.error, "");
  EXPECT_TRUE(parsed.fuse.read_only);
  EXPECT_TRUE(parsed.volume.read_only);
  EXPECT_TRUE(parsed.fuse.allow_other);
  EXPECT_TRUE(parsed.fuse.nonempty);
  EXPECT_TRUE(parsed.fuse.no_xattr);
  EXPECT_TRUE(parsed.fuse.no_handles);
  EXPECT_EQ(parsed.fuse.fsname, "my volume");
  EXPECT_EQ(parsed.volume.commit_interval_ms, 30'000u);
  EXPECT_EQ(parsed.volume.cache_budget_bytes, 64u << 20);
  EXPECT_EQ(parsed.volume.dirty_budget_bytes, 1u << 30);
  EXPECT_EQ(parsed.fuse.thread_count, 3u);
  EXPECT_EQ(parsed.fuse.read_ahead_kib, 256u);
  EXPECT_EQ(parsed.volume.read_ahead_bytes_max, 256u << 10);
}

TEST(MountOptions, owners_and_idle_time) {
  const Parsed parsed = parse("idle=90,uid=1000,gid=0,umask=077");
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.fuse.idle_ms, 90'000u);
  EXPECT_EQ(parsed.fuse.owners.uid, 1000u);
  EXPECT_EQ(parsed.fuse.owners.gid, 0u);
  EXPECT_EQ(parsed.fuse.owners.hidden_bits, 077u);
  EXPECT_EQ(parse("").fuse.idle_ms, 0u);
  EXPECT_FALSE(parse("").fuse.owners.uid.has_value());
  for (const auto* bad : {"idle=", "idle=-1", "idle=99999999", "uid=root", "uid=4294967295",
                          "gid=1x", "umask=8", "umask=1777", "umask="}) {
    EXPECT_NE(parse(bad).error, "") << bad;
  }
}

TEST(MountOptions, space_room_is_a_percentage) {
  EXPECT_EQ(parse("").volume.compaction.bound.room_share, 0.12);
  EXPECT_EQ(parse("space_room=0").volume.compaction.bound.room_share, 0);
  EXPECT_EQ(parse("space_room=100").volume.compaction.bound.room_share, 1);
  for (const auto* bad : {"space_room=", "space_room=101", "space_room=-1", "space_room=5%"})
    EXPECT_NE(parse(bad).error.find("space_room"), std::string::npos) << bad;
}

TEST(MountOptions, space_ratio_is_a_number_above_one) {
  EXPECT_EQ(parse("").volume.compaction.bound.space_ratio, 1.25);
  EXPECT_EQ(parse("space_ratio=1.5").volume.compaction.bound.space_ratio, 1.5);
  EXPECT_EQ(parse("space_ratio=2").volume.compaction.bound.space_ratio, 2);
  for (const auto* bad : {"space_ratio=1", "space_ratio=", "space_ratio=nan", "space_ratio=1.5x",
                          "space_ratio=1e9", "space_ratio=-2"}) {
    EXPECT_NE(parse(bad).error.find("space_ratio"), std::string::npos) << bad;
  }
}

TEST(MountOptions, the_kernels_read_ahead_is_one_request_at_most) {
  const Parsed parsed = parse("readahead=64M");
  EXPECT_EQ(parsed.fuse.read_ahead_kib, 1024u);
  EXPECT_EQ(parsed.volume.read_ahead_bytes_max, 64u << 20);
}

TEST(MountOptions, io_uring_is_on_off_or_auto) {
  EXPECT_EQ(parse("").fuse.uring, fs::UringMode::automatic);
  EXPECT_EQ(parse("io_uring=on").fuse.uring, fs::UringMode::on);
  EXPECT_EQ(parse("io_uring=on,io_uring=off").fuse.uring, fs::UringMode::off);
  EXPECT_EQ(parse("io_uring=off,io_uring=auto").fuse.uring, fs::UringMode::automatic);
  EXPECT_NE(parse("io_uring=yes").error.find("on, off or auto"), std::string::npos);
}

TEST(MountOptions, later_ones_win) {
  EXPECT_FALSE(parse("ro,rw").volume.read_only);
  EXPECT_TRUE(parse("rw,ro").fuse.read_only);
  EXPECT_EQ(parse("nosuid,noexec,suid").fuse.mount_options, (Options{"noexec", "suid"}));
  EXPECT_EQ(parse("commit=1,commit=2").volume.commit_interval_ms, 2000u);
  EXPECT_EQ(parse("sync,async").fuse.mount_options, (Options{"async"}));
  EXPECT_EQ(parse("async,sync").fuse.mount_options, (Options{"sync"}));
  EXPECT_EQ(parse("noatime,relatime").volume.access_times, fs::AccessTimes::relative);
  EXPECT_EQ(parse("relatime,noatime").volume.access_times, fs::AccessTimes::never);
}

TEST(MountOptions, sync_and_dirsync_make_names_durable_at_once) {
  EXPECT_FALSE(parse("rw").fuse.sync_names);
  EXPECT_TRUE(parse("sync").fuse.sync_names);
  EXPECT_TRUE(parse("dirsync").fuse.sync_names);
  EXPECT_FALSE(parse("sync,async").fuse.sync_names);
  EXPECT_TRUE(parse("dirsync,async").fuse.sync_names);
}

TEST(MountOptions, those_for_the_kernel_go_there) {
  EXPECT_EQ(parse("nosuid,nodev,noexec,auto_unmount,default_permissions").fuse.mount_options,
            (Options{"nosuid", "nodev", "noexec", "auto_unmount"}));
}

TEST(MountOptions, those_for_mount_8_and_fstab_are_ignored) {
  const Parsed parsed = parse(
      "defaults,user,users,user=anna,noauto,auto,nofail,_netdev,owner,group,x-systemd.automount,"
      "x-gvfs-name=Nacre,X-mount.mkdir=0755,X-mount.mkdir,comment=mine,subtype=nacre,,");
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.fuse.mount_options, Options{});
}

TEST(MountOptions, unknown_ones_are_named_with_what_exists) {
  for (const char* text : {"nosuch", "ro,nosuch", "nosuch=1", "allow_others"}) {
    const std::string error = parse(text).error;
    EXPECT_NE(error.find("commit=SECONDS"), std::string::npos) << error;
    EXPECT_NE(error.find("noexec"), std::string::npos) << error;
  }
  EXPECT_NE(parse("ro,nosuch=1").error.find("nosuch=1"), std::string::npos);
  EXPECT_NE(parse("ro=1").error, "");
  EXPECT_NE(parse("commit").error, "");
}

TEST(MountOptions, values_that_are_none_are_refused) {
  for (const char* text :
       {"commit=0", "commit=", "commit=5s", "commit=-1", "commit=99999", "cache=", "cache=M",
        "cache=1", "cache=12Q", "dirty=1MM", "dirty=99999999999999999999", "dirty=9999999999G",
        "threads=0", "threads=1000", "threads=two", "readahead=x", "fsname="}) {
    EXPECT_NE(parse(text).error.find(text), std::string::npos) << text << ": " << parse(text).error;
  }
}

TEST(MountOptions, remount_is_refused_with_what_to_do) {
  EXPECT_NE(parse("remount,ro").error.find("nacre umount"), std::string::npos);
}

TEST(MountOptions, allow_root_is_refused_with_the_reason) {
  EXPECT_NE(parse("allow_root").error.find("allow_other"), std::string::npos);
}

}  // namespace

}  // namespace nacre::tests
