// SPDX-License-Identifier: Apache-2.0
// Encoding and finding frames.
#include "metadata/sealed_fs/frame_layout.h"

#include <algorithm>
#include <cstring>

#include "gpu_engine/checksum/crc32.h"

namespace nacre::metadata {

static_assert(sizeof(FileSalt) == sizeof(FrameTag));

namespace {

constexpr std::array<Byte, 4> magic = {'N', 'F', 'R', 'M'};
constexpr std::uint32_t known_flags = frame_flag_complete | frame_flag_witness;

}  // namespace

void encode_frame_header(const FrameHeader& header, MutableByteView out) {
  std::copy(magic.begin(), magic.end(), out.begin());
  store_le(&out[4], header.plain_size);
  store_le(&out[8], header.sequence);
  store_le(&out[16], header.synced_up_to);
  store_le(&out[24], header.flags);
}

std::uint32_t frame_crc(const FileSalt& salt, ByteView frame) {
  std::uint32_t crc = engine::crc32(0, salt);
  crc = engine::crc32(crc, frame.first(frame_authenticated_bytes));
  return engine::crc32(crc, frame.subspan(frame_header_size_bytes));
}

std::optional<FrameView> parse_frame(const FileHeader& file, ByteView bytes) {
  if (bytes.size() < frame_overhead_bytes) return std::nullopt;
  if (!std::equal(magic.begin(), magic.end(), bytes.begin())) return std::nullopt;
  FrameView frame;
  frame.header.plain_size = load_le<std::uint32_t>(&bytes[4]);
  frame.header.sequence = load_le<std::uint64_t>(&bytes[8]);
  frame.header.synced_up_to = load_le<std::uint64_t>(&bytes[16]);
  frame.header.flags = load_le<std::uint32_t>(&bytes[24]);
  const std::size_t size_max = file.is_padded ? frame_padded_bytes_max : frame_plain_bytes_max;
  if (frame.header.plain_size > size_max ||
      frame.header.plain_size > bytes.size() - frame_overhead_bytes ||
      frame.header.synced_up_to > frame.header.sequence ||
      (frame.header.flags & ~known_flags) != 0) {
    return std::nullopt;
  }
  frame.stored_size = frame_overhead_bytes + frame.header.plain_size;
  const ByteView whole = bytes.first(frame.stored_size);
  if (frame_crc(file.salt, whole) != load_le<std::uint32_t>(&bytes[frame_authenticated_bytes])) {
    return std::nullopt;
  }
  frame.authenticated = whole.first(frame_authenticated_bytes);
  frame.ciphertext = whole.subspan(frame_header_size_bytes, frame.header.plain_size);
  frame.tag = whole.last(frame_tag_size_bytes);
  return frame;
}

Bytes encode(const LogWitness& witness, EpochFormat format) {
  Bytes bytes(format == EpochFormat::one ? log_witness_size_bytes_1 : log_witness_size_bytes_2);
  store_le(&bytes[0], witness.previous_log);
  store_le(&bytes[8], witness.previous_frames);
  store_le(&bytes[16], witness.done_log);
  store_le(&bytes[24], witness.manifest);
  store_le(&bytes[32], witness.manifest_frames);
  if (format == EpochFormat::one) return bytes;
  auto at = bytes.begin() + log_witness_size_bytes_1;
  for (const auto* part : {&witness.previous_salt, &witness.previous_tag, &witness.manifest_salt,
                           &witness.manifest_tag}) {
    at = std::copy(part->begin(), part->end(), at);
  }
  return bytes;
}

std::optional<LogWitness> decode_log_witness(ByteView bytes, EpochFormat format) {
  const bool is_first = format == EpochFormat::one;
  if (bytes.size() != (is_first ? log_witness_size_bytes_1 : log_witness_size_bytes_2)) {
    return std::nullopt;
  }
  LogWitness witness;
  witness.previous_log = load_le<std::uint64_t>(&bytes[0]);
  witness.previous_frames = load_le<std::uint64_t>(&bytes[8]);
  witness.done_log = load_le<std::uint64_t>(&bytes[16]);
  witness.manifest = load_le<std::uint64_t>(&bytes[24]);
  witness.manifest_frames = load_le<std::uint64_t>(&bytes[32]);
  if (is_first) return witness;
  auto at = bytes.begin() + log_witness_size_bytes_1;
  for (auto* part : {&witness.previous_salt, &witness.previous_tag, &witness.manifest_salt,
                     &witness.manifest_tag}) {
    std::copy_n(at, part->size(), part->begin());
    at += static_cast<std::ptrdiff_t>(part->size());
  }
  return witness;
}

std::array<Byte, manifest_link_size_bytes> encode(const ManifestLink& link) {
  std::array<Byte, manifest_link_size_bytes> bytes;
  store_le(&bytes[0], link.log);
  std::copy(link.salt.begin(), link.salt.end(), bytes.begin() + 8);
  return bytes;
}

std::optional<ManifestLink> decode_manifest_link(ByteView bytes) {
  if (bytes.size() != manifest_link_size_bytes) return std::nullopt;
  ManifestLink link{.log = load_le<std::uint64_t>(&bytes[0])};
  std::copy_n(bytes.begin() + 8, link.salt.size(), link.salt.begin());
  return link;
}

std::size_t find_frame_magic(ByteView bytes, std::size_t offset) {
  while (offset + magic.size() <= bytes.size()) {
    const void* hit =
        std::memchr(&bytes[offset], magic[0], bytes.size() - offset - magic.size() + 1);
    if (hit == nullptr) break;
    offset = static_cast<std::size_t>(static_cast<const Byte*>(hit) - bytes.data());
    if (std::memcmp(hit, magic.data(), magic.size()) == 0) return offset;
    offset++;
  }
  return bytes.size();
}

}  // namespace nacre::metadata
