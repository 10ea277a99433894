// SPDX-License-Identifier: Apache-2.0
// The identity of a record and the header of a segment. rows.h has the layouts.
#include <fmt/format.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "metadata/format/rows.h"

namespace nacre::metadata {

namespace {

constexpr std::string_view segment_magic = "NSEG";
constexpr Byte segment_version = 1;
constexpr std::size_t segment_crc_at = 52;

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](Byte byte) { return byte == 0; });
}

}  // namespace

engine::RecordIdentity encode(const RecordName& name) {
  engine::RecordIdentity identity = {};
  store_le(identity.data(), name.inode.value);
  store_le(identity.data() + 8, name.chunk.value);
  store_le(identity.data() + 16, name.version.value);
  store_le(identity.data() + 24, name.offset);
  identity[28] = static_cast<Byte>(name.kind);
  return identity;
}

Result<RecordName> decode_record_name(const engine::RecordIdentity& identity) {
  const RecordName name{.inode = {load_le<std::uint64_t>(identity.data())},
                        .chunk = {load_le<std::uint64_t>(identity.data() + 8)},
                        .version = {load_le<std::uint64_t>(identity.data() + 16)},
                        .offset = load_le<std::uint32_t>(identity.data() + 24),
                        .kind = static_cast<RecordKind>(identity[28])};
  const bool is_chunk = name.kind == RecordKind::chunk && name.offset == 0;
  const bool is_patch = name.kind == RecordKind::patch && name.offset < chunk_size_bytes_max;
  const bool is_part = name.kind == RecordKind::checkpoint_part && name.offset == 0;
  const bool is_root =
      name.kind == RecordKind::checkpoint_root && name.offset == 0 && name.chunk.value == 0;
  if (name.inode.value == 0 || (!is_chunk && !is_patch && !is_part && !is_root) ||
      !all_zero(ByteView(identity).subspan(29))) {
    return fail(ErrorCode::corrupt, "the identity in a record is malformed");
  }
  return name;
}

std::array<Byte, segment_header_size_bytes> encode(const SegmentHeader& header) {
  std::array<Byte, segment_header_size_bytes> bytes = {};
  std::copy(segment_magic.begin(), segment_magic.end(), bytes.begin());
  bytes[4] = segment_version;
  std::copy(header.volume_id.begin(), header.volume_id.end(), bytes.begin() + 8);
  store_le(bytes.data() + 24, header.segment.value);
  std::copy(header.salt.begin(), header.salt.end(), bytes.begin() + 32);
  store_le(bytes.data() + 48, header.epoch);
  store_le(bytes.data() + segment_crc_at, engine::crc32(0, ByteView(bytes).first(segment_crc_at)));
  return bytes;
}

Result<SegmentHeader> decode_segment_header(ByteView bytes) {
  if (bytes.size() < segment_header_size_bytes) {
    return fail(ErrorCode::corrupt,
                fmt::format("the segment header is cut off after {} bytes", bytes.size()));
  }
  if (as_text(bytes.first(4)) != segment_magic) {
    return fail(ErrorCode::corrupt, "the file does not begin as a segment does");
  }
  const ByteView covered = bytes.first(segment_crc_at);
  if (engine::crc32(0, covered) != load_le<std::uint32_t>(bytes.data() + segment_crc_at) ||
      !all_zero(bytes.subspan(56, 8))) {
    return fail(ErrorCode::corrupt, "the CRC-32 of the segment header is wrong");
  }
  if (bytes[4] > segment_version) {
    return fail(ErrorCode::unsupported,
                fmt::format("segment format {}: made by a newer Nacre", bytes[4]));
  }
  SegmentHeader header;
  std::copy_n(bytes.begin() + 8, header.volume_id.size(), header.volume_id.begin());
  header.segment.value = load_le<std::uint64_t>(bytes.data() + 24);
  std::copy_n(bytes.begin() + 32, header.salt.size(), header.salt.begin());
  header.epoch = load_le<std::uint32_t>(bytes.data() + 48);
  if (bytes[4] != segment_version || !all_zero(bytes.subspan(5, 3)) || header.segment.value == 0) {
    return fail(ErrorCode::corrupt, "the segment header is malformed");
  }
  return header;
}

}  // namespace nacre::metadata
