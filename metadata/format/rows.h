// SPDX-License-Identifier: Apache-2.0
// Every row of every table: keys, values, and their encoding. docs/FORMAT.md, "Tables".
//
// Integers in keys are big-endian and of fixed width, so that rows sort by number.
// Every value begins with a version byte (1); the fields follow without gaps. In the layouts below
//   u8   one byte
//   v    an unsigned LEB128 varint in its shortest form (row_codec.h)
//   s    a signed integer, zigzag-coded, as a varint
//   [n]  n bytes as they are
// A value has one encoding only. Decoders return corrupt unless every field is within its bounds,
// every varint has its shortest form, and no bytes are left over.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/record/record.h"
#include "metadata/format/identifiers.h"

namespace nacre::metadata {

inline constexpr std::size_t name_size_bytes_max = 255;
inline constexpr std::size_t symlink_size_bytes_max = 4095;
inline constexpr std::size_t xattr_value_size_bytes_max = 64u << 10;
inline constexpr std::size_t patch_count_max = 32;  // of one chunk row

struct Timestamp {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  auto operator<=>(const Timestamp&) const = default;
};

// InodeRow::flags
inline constexpr std::uint32_t inode_flag_immutable = 1u << 0;  // chattr +i
inline constexpr std::uint32_t inode_flag_append = 1u << 1;     // chattr +a
inline constexpr std::uint32_t inode_flag_no_dump = 1u << 2;
inline constexpr std::uint32_t inode_flag_no_atime = 1u << 3;
// inode_codec.h describes the higher bits.

// inodes: key = inode u64.
//   value: 1 | mode v | uid v | gid v | link count v | flags v | rdev v | size v | data bytes v |
//          parent v | accessed | modified | changed | born | target size v | target [target size]
//   a time: seconds s | nanoseconds v (< 10^9)
// mode <= 0177777; target size <= 4095.
struct InodeRow {
  std::uint32_t mode = 0;  // type and permissions, as st_mode
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t link_count = 0;
  std::uint32_t flags = 0;
  std::uint64_t rdev = 0;
  std::uint64_t size = 0;  // of a directory: the number of its entries
  // Of a regular file: the sum, over its chunk rows, of how far the content of each reaches.
  // st_blocks is computed from it.
  std::uint64_t data_bytes = 0;
  InodeNumber parent;  // of a directory; of others none
  Timestamp accessed, modified, changed, born;
  std::string symlink_target;  // of a symlink, else empty
};

// dentries: key = parent u64 | keyed hash of the name u64 (3 … 2^63 - 1) | name [1 … 255].
//   value: 1 | type u8 (<= 15) | inode v (> 0)
struct DentryRow {
  InodeNumber inode;
  std::uint8_t type = 0;  // DT_REG, DT_DIR, …
};

// Where a record lies.
struct RecordLocation {
  SegmentNumber segment;
  std::uint64_t offset = 0;
  std::uint32_t stored_size = 0;
  auto operator<=>(const RecordLocation&) const = default;
};

// chunks: key = inode u64 | chunk index u64. Every chunk below a file's size is covered by exactly
// one row: its own, or a hole row whose key is at or before it. So a row that is not there is
// damage, never zeros. The content of a chunk is: zeros, then the first valid_size bytes of the
// base, then the patches in order. Shrinking a file lowers valid sizes, so that bytes cut off never
// come back when it grows.
// Lost ranges lie over all of that. Their bytes are not known any more, which is neither zeros nor
// damage, but a fact that fsck.nacre --repair states. Reading them is an error.
//   hole:             1 | 0 u8 | chunk count v (> 0)
//   without a base:   1 | 1 u8 | patches
//   with a base:      1 | 2 u8 | location | version | plain size v | cut size v | patches
//   lost chunks:      1 | 3 u8 | chunk count v (> 0); none reaches past the end of its file
//   with lost ranges: 1 | 4 u8 | count v (> 0) | range… | then as after 1 or 2, that number first
//   range:            gap v (from the last one's end; > 0 except in the first) | size v (> 0)
//   patches:          count v (<= 32) | patch…
//   patch:            offset v | plain size v (> 0) | cut size v | version | location
//   location:         segment v | offset v | stored size v (> 0);   of an inlined patch: 0 v
//   version:          session ordinal v (upper 24 bits) | place v (lower 40 bits)
// valid size = plain size - cut size. Plain sizes, and a patch's offset + plain size, are at most
// 1 MiB; offset + stored size < 2^63.
struct ChunkBase {
  RecordLocation location;
  RecordVersion version;
  std::uint32_t plain_size = 0;  // as in the record
  std::uint32_t valid_size = 0;  // <= plain_size
  bool operator==(const ChunkBase&) const = default;
};
struct ChunkPatch {
  std::uint32_t offset = 0;      // within the chunk
  std::uint32_t plain_size = 0;  // as in the record or the inlined row
  std::uint32_t valid_size = 0;  // > 0, <= plain_size
  RecordVersion version;
  std::optional<RecordLocation> location;  // none: the bytes are a row of the table inlined
  bool operator==(const ChunkPatch&) const = default;
};
struct LostRange {
  std::uint32_t offset = 0;  // within the chunk
  std::uint32_t size = 0;    // > 0
  std::uint32_t end() const { return offset + size; }
  auto operator<=>(const LostRange&) const = default;
};
struct ChunkRow {
  std::optional<ChunkBase> base;    // none: zeros below the patches
  std::vector<ChunkPatch> patches;  // at most patch_count_max
  std::vector<LostRange> lost;      // in order; between two there are bytes
  bool operator==(const ChunkRow&) const = default;
};
struct HoleRow {
  std::uint64_t chunk_count = 0;  // > 0
};
// Chunks whose bytes are all lost.
struct LostRow {
  std::uint64_t chunk_count = 0;  // > 0
};
// One of the three.
struct ChunkMapRow {
  std::optional<ChunkRow> chunk;
  std::optional<HoleRow> hole;
  std::optional<LostRow> lost;
};

// segments: key = segment u64.
//   value: 1 | committed size v | live bytes v | epoch v | salt [16]
struct SegmentRow {
  std::uint64_t committed_size =
      0;                         // bytes of the file that count; what lies beyond is a torn tail
  std::uint64_t live_bytes = 0;  // stored bytes of records that rows name
  std::uint32_t epoch = 0;
  engine::SessionSalt salt = {};  // of the session that made it
};

// orphans: key = inode u64; value = the version byte alone.
// xattrs: key = inode u64 | name; value = the bytes.
//
// system: one row a key. u64 stands for 1 | number v.
inline constexpr std::string_view system_key_next_inode = "next_inode";       // u64
inline constexpr std::string_view system_key_next_segment = "next_segment";   // u64
inline constexpr std::string_view system_key_next_session = "next_session";   // u64
inline constexpr std::string_view system_key_inode_count = "inode_count";     // u64
inline constexpr std::string_view system_key_data_bytes = "data_bytes";       // u64
inline constexpr std::string_view system_key_keyring = "keyring_generation";  // u64
// The superblock's generation, only in format 2. May be missing until the volume is next opened for
// writing.
inline constexpr std::string_view system_key_superblock = "superblock_generation";  // u64
inline constexpr std::string_view system_key_name_hash = "name_hash_key";           // 16 bytes
inline constexpr std::string_view system_key_session_prefix = "session/";  // + 16 bytes of salt
inline constexpr std::string_view system_key_checkpoint_prefix = "checkpoint/";  // checkpoint.h
// value: 1 | ordinal v (1 … 2^24 - 1) | epoch v | opened seconds s
struct SessionRow {
  std::uint64_t ordinal = 0;  // 1, 2, …; < 2^24
  std::uint32_t epoch = 0;
  std::int64_t opened_seconds = 0;  // since 1970
};

// Rows that exist while keys are rotated in format 2: the digests of the records that were there
// when the rotation began, and, once all digests are there, the epoch below which no other record
// counts. docs/FORMAT.md, "Records of older epochs".
inline constexpr std::string_view system_key_genuine = "genuine";          // u64
inline constexpr std::string_view system_key_genuine_prefix = "genuine/";  // genuine_key_of()
std::string genuine_key_of(const engine::SessionSalt& salt, std::uint32_t counter);
// value: 1 | SHA-256 of the whole record [32]
std::string encode_genuine(const std::array<Byte, 32>& digest);
Result<std::array<Byte, 32>> decode_genuine(std::string_view value);

// How the last rotation of keys was asked to run. Absent before the first one. The keyring says
// whether a rotation runs.
inline constexpr std::string_view system_key_rotation = "rotation";
// value: 1 | paused u8 (0, 1) | recompress u8 (0, 1) | rate v | total v
struct RotationRow {
  bool paused = false;      // by a command; it continues when it is resumed
  bool recompress = false;  // records are compressed anew with the superblock's codec
  std::uint64_t rate_bytes_per_second = 0;  // 0: the default
  std::uint64_t total_bytes = 0;            // bytes of live records when it began
  bool operator==(const RotationRow&) const = default;
};

std::string inode_key(InodeNumber inode);
std::string dentry_key(InodeNumber parent, std::uint64_t name_hash, std::string_view name);
std::string dentry_prefix(InodeNumber parent);
// The first key of a directory whose hash is at or past name_hash.
std::string dentry_seek_key(InodeNumber parent, std::uint64_t name_hash);
std::string chunk_key(InodeNumber inode, ChunkIndex index);
std::string chunk_prefix(InodeNumber inode);
// inlined: key = inode u64 | chunk index u64 | version u64 | offset u32; value = the patch's bytes.
std::string inlined_key(InodeNumber inode, ChunkIndex index, RecordVersion version,
                        std::uint32_t offset);
std::string inlined_prefix(InodeNumber inode);
std::string xattr_key(InodeNumber inode, std::string_view name);
std::string xattr_prefix(InodeNumber inode);
std::string segment_key(SegmentNumber segment);
std::string orphan_key(InodeNumber inode);
std::string session_key_of(const engine::SessionSalt& salt);
// The first key after all keys that begin with prefix. Empty if there is no such key.
std::string prefix_end(std::string_view prefix);

struct DentryKeyParts {
  InodeNumber parent;
  std::uint64_t name_hash;
  std::string_view name;  // into the key
};
struct ChunkKeyParts {
  InodeNumber inode;
  ChunkIndex index;
};
struct InlinedKeyParts {
  InodeNumber inode;
  ChunkIndex index;
  RecordVersion version;
  std::uint32_t offset;
};
Result<InodeNumber> decode_inode_key(std::string_view key);  // inodes and orphans
Result<DentryKeyParts> decode_dentry_key(std::string_view key);
Result<ChunkKeyParts> decode_chunk_key(std::string_view key);
Result<InlinedKeyParts> decode_inlined_key(std::string_view key);
Result<SegmentNumber> decode_segment_key(std::string_view key);

std::string encode(const InodeRow& row);
std::string encode(const DentryRow& row);
std::string encode(const ChunkRow& row);
std::string encode(const HoleRow& row);
std::string encode(const LostRow& row);
std::string encode(const SegmentRow& row);
std::string encode(const SessionRow& row);
std::string encode(const RotationRow& row);
std::string encode_u64(std::uint64_t value);
Result<InodeRow> decode_inode_row(std::string_view value);
Result<DentryRow> decode_dentry_row(std::string_view value);
Result<ChunkMapRow> decode_chunk_map_row(std::string_view value);
Result<SegmentRow> decode_segment_row(std::string_view value);
Result<SessionRow> decode_session_row(std::string_view value);
Result<RotationRow> decode_rotation_row(std::string_view value);
Result<std::uint64_t> decode_u64(std::string_view value);

// The identity of a record in a segment, which its sealed body carries.
//   0        8             16        24       28   29      32
//   | inode u64 | chunk u64 | version u64 | offset u32 | kind u8 | 0[3] |
// In records of a checkpoint (checkpoint.h), inode is its number, and chunk the place of a part.
enum class RecordKind : std::uint8_t {
  chunk = 1,
  patch = 2,
  checkpoint_part = 3,
  checkpoint_root = 4
};
struct RecordName {
  InodeNumber inode;
  ChunkIndex chunk;
  RecordVersion version;
  std::uint32_t offset = 0;  // of a patch, within its chunk
  RecordKind kind = RecordKind::chunk;
  auto operator<=>(const RecordName&) const = default;
};
// True for chunks and patches, which rows of the table chunks name. The other kinds belong to a
// checkpoint, whose row in the table system names them.
inline bool is_of_file(RecordKind kind) {
  return kind == RecordKind::chunk || kind == RecordKind::patch;
}
engine::RecordIdentity encode(const RecordName& name);
Result<RecordName> decode_record_name(const engine::RecordIdentity& identity);

// The first 64 bytes of a segment file. They are in the clear and have a CRC. Integers are
// little-endian, v = 1.
//   0        4   5      8               24            32         48          52      56     64
//   | "NSEG" | v | 0[3] | volume id[16] | segment u64 | salt[16] | epoch u32 | crc32 | 0[8] |
// The CRC-32 covers bytes 0…51.
struct SegmentHeader {
  engine::VolumeId volume_id = {};
  SegmentNumber segment;
  engine::SessionSalt salt = {};
  std::uint32_t epoch = 0;
};
inline constexpr std::size_t segment_header_size_bytes = 64;
std::array<Byte, segment_header_size_bytes> encode(const SegmentHeader& header);
Result<SegmentHeader> decode_segment_header(ByteView bytes);

// SipHash-2-4 (Aumasson and Bernstein, 2012) of the name under the volume's key, 63 bits, never
// below 3 (readdir cookies 0…2 mean the start, "." and "..").
std::uint64_t name_hash(const std::array<Byte, 16>& key, std::string_view name);

}  // namespace nacre::metadata
