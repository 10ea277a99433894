// SPDX-License-Identifier: Apache-2.0
// The parts of the kernel's FUSE protocol (7.45) that Debian 12's <linux/fuse.h> (7.38) or libfuse
// 3.14 do not have: STATX, and the layout of replies that are written without libfuse. Layouts are
// the kernel's, and the static_asserts pin them.
#pragma once

#include <linux/fuse.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace nacre::fs::protocol {

inline constexpr std::uint32_t opcode_statx = 52;
// A flag of INIT: nothing is opened by handle (7.41). Flags from bit 32 on are in flags2.
inline constexpr std::uint64_t flag_no_export = std::uint64_t{1} << 38;
// From this minor version on (Linux 5.16), a kernel that gets data for its cache makes the file
// grow only by the bytes of that data.
inline constexpr std::uint32_t minor_with_blocks_alone = 35;
// There is a counter for every opcode below this.
inline constexpr std::uint32_t opcode_count = 64;

struct StatxTime {
  std::int64_t seconds;
  std::uint32_t nanoseconds;
  std::int32_t reserved;
};

struct Statx {
  std::uint32_t mask;
  std::uint32_t block_size;
  std::uint64_t attributes;
  std::uint32_t link_count;
  std::uint32_t uid;
  std::uint32_t gid;
  std::uint16_t mode;
  std::uint16_t spare0;
  std::uint64_t inode;
  std::uint64_t size;
  std::uint64_t blocks;
  std::uint64_t attributes_mask;
  StatxTime accessed, born, changed, modified;
  std::uint32_t rdev_major, rdev_minor;
  std::uint32_t device_major, device_minor;
  std::uint64_t spare2[14];
};
static_assert(sizeof(Statx) == 256 && offsetof(Statx, accessed) == 64);

struct StatxIn {
  std::uint32_t getattr_flags;
  std::uint32_t reserved;
  std::uint64_t fh;
  std::uint32_t flags;
  std::uint32_t mask;
};
static_assert(sizeof(StatxIn) == 24);

struct StatxOut {
  std::uint64_t valid_seconds;
  std::uint32_t valid_nanoseconds;
  std::uint32_t flags;
  std::uint64_t spare[2];
  Statx statx;
};
static_assert(sizeof(StatxOut) == 288);

// The answer to TMPFILE, which is like that to CREATE.
struct CreateOut {
  fuse_entry_out entry;
  fuse_open_out open;
};
static_assert(sizeof(CreateOut) == 144);

// A notification that names inodes, which follow it as numbers of 64 bits.
struct PruneOut {
  std::uint32_t count;
  std::uint32_t padding;
  std::uint64_t spare;
};
static_assert(sizeof(PruneOut) == 16);

static_assert(sizeof(fuse_in_header) == 40 && sizeof(fuse_write_in) == 40);
// The offset of a WRITE's data in its request.
inline constexpr std::size_t write_data_offset = sizeof(fuse_in_header) + sizeof(fuse_write_in);

// One request carries at most this much data. The header of any other request fits in one page.
inline constexpr std::size_t data_size_bytes_max = 1u << 20;
inline constexpr std::size_t request_size_bytes_max = data_size_bytes_max + 4096;

}  // namespace nacre::fs::protocol
