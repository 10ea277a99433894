// SPDX-License-Identifier: Apache-2.0
// The layout of frames in logs, manifests and small files, which writer, reader and scrub share.
//
// A frames file is a header (64 bytes) and frames without gaps, numbered from 0:
// In a padded file (FileHeader::is_padded) the sealed bytes are: the size of the content u32, its
// position in the file's content u64, the content, and zeros, so that n is a Padmé length.
//   0        4        8            16             24      28      32           32 + n     48 + n
//   |"NFRM"  | n u32  | sequence   | synced up to | flags | crc32 | ciphertext | tag[16]  |
// synced up to: frames below this number were known to be on the medium when this one was written.
// So a bad frame below a later frame's "synced up to" is damage; any other one is a tail torn by a
// crash, and the file ends before it. Zeros may follow the last frame: space written ahead.
// The nonce is the sequence; the CRC covers salt, header without CRC, ciphertext, tag.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu_engine/base/bytes.h"
#include "metadata/sealed_fs/file_header.h"

namespace nacre::metadata {

inline constexpr std::size_t frame_header_size_bytes = 32;
inline constexpr std::size_t frame_authenticated_bytes = 28;  // of the header: all but the CRC
inline constexpr std::size_t frame_tag_size_bytes = 16;
inline constexpr std::size_t frame_overhead_bytes = frame_header_size_bytes + frame_tag_size_bytes;
inline constexpr std::size_t frame_plain_bytes_max = 64u << 10;  // of content
inline constexpr std::size_t padded_head_bytes = 12;             // size and position
// The most that is sealed in a padded frame: the Padmé length of the longest content and its head.
inline constexpr std::size_t frame_padded_bytes_max = frame_plain_bytes_max + 2048;
// The content is whole up to and with this frame. Small files always end with such a frame.
inline constexpr std::uint32_t frame_flag_complete = 1u << 0;
// The frame holds no content. It holds a LogWitness, or the ManifestLink of a manifest of format 2.
inline constexpr std::uint32_t frame_flag_witness = 1u << 1;
inline constexpr std::size_t frame_size_bytes_max = frame_padded_bytes_max + frame_overhead_bytes;
// No frames file grows past this. The size of the memtables bounds logs. A manifest is begun anew
// at 4 MiB, with the edits that all tables together need.
constexpr std::uint64_t frames_file_size_bytes_max(FileClass file_class) {
  switch (file_class) {
    case FileClass::other:
      return 1ull << 20;
    case FileClass::manifest:
    case FileClass::info_log:
      return 64ull << 20;
    default:
      return 2ull << 30;
  }
}

struct FrameHeader {
  std::uint32_t plain_size = 0;  // n; in a padded frame the size of all that is sealed
  std::uint64_t sequence = 0;
  std::uint64_t synced_up_to = 0;  // <= sequence
  std::uint32_t flags = 0;
};

// Writes all of the header except its CRC.
void encode_frame_header(const FrameHeader& header, MutableByteView out);
// The CRC of a whole frame.
std::uint32_t frame_crc(const FileSalt& salt, ByteView frame);

// Returns the frame at the beginning of bytes if its fields are possible and its CRC is right; else
// none. file is the header of the file from which the bytes come.
struct FrameView {
  FrameHeader header;
  ByteView authenticated;  // header bytes
  ByteView ciphertext;
  ByteView tag;
  std::size_t stored_size = 0;
};
std::optional<FrameView> parse_frame(const FileHeader& file, ByteView bytes);

// What a log knows of the files around it. Each number was durable when the witness was written. So
// opening the database finds a log or a manifest that is missing, cut, or older than another file
// says. RocksDB itself takes what it finds and reports nothing of that.
//   0                8                  16          24         32                40
//   | previous log   | its frame count  | done log  | manifest | its frame count |
// and in format 2
//   40                      56                   72                 88                   104
//   | previous log: salt[16] | its last tag[16]  | manifest: salt[16] | its last tag[16] |
// Salt and count say which file is meant, and of which branch of history. The tag shows that it is
// that very frame.
using FrameTag = std::array<Byte, frame_tag_size_bytes>;
struct LogWitness {
  std::uint64_t previous_log = 0;  // the number of the log before this one; 0: none
  std::uint64_t previous_frames = 0;
  std::uint64_t done_log = 0;  // logs up to this number are of no use any more
  std::uint64_t manifest = 0;  // the number that CURRENT names
  std::uint64_t manifest_frames = 0;
  FileSalt previous_salt = {};
  FrameTag previous_tag = {};  // of frame previous_frames - 1
  FileSalt manifest_salt = {};
  FrameTag manifest_tag = {};  // of frame manifest_frames - 1
};
inline constexpr std::size_t log_witness_size_bytes_1 = 40;
inline constexpr std::size_t log_witness_size_bytes_2 = 104;
Bytes encode(const LogWitness& witness, EpochFormat format);
std::optional<LogWitness> decode_log_witness(ByteView bytes, EpochFormat format);

// The first frame of a manifest of format 2. It names the log that was the newest when the manifest
// was made, or 0 if there was none.
//   0              8            24
//   | log u64      | its salt[16]
struct ManifestLink {
  std::uint64_t log = 0;
  FileSalt salt = {};
  friend bool operator==(const ManifestLink&, const ManifestLink&) = default;
};
inline constexpr std::size_t manifest_link_size_bytes = 24;
std::array<Byte, manifest_link_size_bytes> encode(const ManifestLink& link);
std::optional<ManifestLink> decode_manifest_link(ByteView bytes);

// Returns the first place at or after offset that has a frame's magic, or bytes.size() if there is
// none.
std::size_t find_frame_magic(ByteView bytes, std::size_t offset);

}  // namespace nacre::metadata
