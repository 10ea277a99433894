// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the keys of all tables. rows.h has the layouts.
#include <fmt/format.h>

#include "metadata/format/rows.h"

namespace nacre::metadata {

namespace {

constexpr std::uint64_t name_hash_min = 3;
constexpr std::uint64_t name_hash_max = ~0ull >> 1;

template <typename T>
void append_be(std::string& key, T value) {
  for (unsigned shift = sizeof(T) * 8; shift > 0;) {
    shift -= 8;
    key.push_back(static_cast<char>(value >> shift));
  }
}

std::uint64_t load_be_64(std::string_view key, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i)
    value = value << 8 | static_cast<std::uint8_t>(key[at + i]);
  return value;
}

std::string key_of_number(std::uint64_t number) {
  std::string key;
  append_be(key, number);
  return key;
}

tl::unexpected<Error> malformed(std::string_view what, std::string_view key) {
  return fail(ErrorCode::corrupt,
              fmt::format("the key of a {} row is malformed ({} bytes)", what, key.size()));
}

bool name_is_valid(std::string_view name) {
  return !name.empty() && name.size() <= name_size_bytes_max && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

std::string inode_key(InodeNumber inode) {
  return key_of_number(inode.value);
}
std::string orphan_key(InodeNumber inode) {
  return key_of_number(inode.value);
}
std::string segment_key(SegmentNumber segment) {
  return key_of_number(segment.value);
}
std::string dentry_prefix(InodeNumber parent) {
  return key_of_number(parent.value);
}
std::string chunk_prefix(InodeNumber inode) {
  return key_of_number(inode.value);
}
std::string inlined_prefix(InodeNumber inode) {
  return key_of_number(inode.value);
}
std::string xattr_prefix(InodeNumber inode) {
  return key_of_number(inode.value);
}

std::string dentry_seek_key(InodeNumber parent, std::uint64_t name_hash) {
  std::string key = dentry_prefix(parent);
  append_be(key, name_hash);
  return key;
}

std::string dentry_key(InodeNumber parent, std::uint64_t name_hash, std::string_view name) {
  std::string key = dentry_seek_key(parent, name_hash);
  key.append(name);
  return key;
}

std::string chunk_key(InodeNumber inode, ChunkIndex index) {
  std::string key = chunk_prefix(inode);
  append_be(key, index.value);
  return key;
}

std::string inlined_key(InodeNumber inode, ChunkIndex index, RecordVersion version,
                        std::uint32_t offset) {
  std::string key = chunk_key(inode, index);
  append_be(key, version.value);
  append_be(key, offset);
  return key;
}

std::string xattr_key(InodeNumber inode, std::string_view name) {
  std::string key = xattr_prefix(inode);
  key.append(name);
  return key;
}

std::string session_key_of(const engine::SessionSalt& salt) {
  std::string key(system_key_session_prefix);
  key.append(as_text(salt));
  return key;
}

std::string genuine_key_of(const engine::SessionSalt& salt, std::uint32_t counter) {
  std::string key(system_key_genuine_prefix);
  key.append(as_text(salt));
  for (int shift = 24; shift >= 0; shift -= 8)
    key.push_back(static_cast<char>(counter >> shift));
  return key;
}

std::string prefix_end(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<std::uint8_t>(end.back()) == 0xff)
    end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<std::uint8_t>(end.back()) + 1);
  return end;
}

Result<InodeNumber> decode_inode_key(std::string_view key) {
  if (key.size() != 8 || load_be_64(key, 0) == 0) return malformed("inode", key);
  return InodeNumber{load_be_64(key, 0)};
}

Result<SegmentNumber> decode_segment_key(std::string_view key) {
  if (key.size() != 8 || load_be_64(key, 0) == 0) return malformed("segment", key);
  return SegmentNumber{load_be_64(key, 0)};
}

Result<DentryKeyParts> decode_dentry_key(std::string_view key) {
  if (key.size() < 16) return malformed("directory entry", key);
  const DentryKeyParts parts{
      .parent = {load_be_64(key, 0)}, .name_hash = load_be_64(key, 8), .name = key.substr(16)};
  if (parts.parent.value == 0 || parts.name_hash < name_hash_min ||
      parts.name_hash > name_hash_max || !name_is_valid(parts.name)) {
    return malformed("directory entry", key);
  }
  return parts;
}

Result<ChunkKeyParts> decode_chunk_key(std::string_view key) {
  if (key.size() != 16 || load_be_64(key, 0) == 0) return malformed("chunk", key);
  return ChunkKeyParts{.inode = {load_be_64(key, 0)}, .index = {load_be_64(key, 8)}};
}

Result<InlinedKeyParts> decode_inlined_key(std::string_view key) {
  if (key.size() != 28 || load_be_64(key, 0) == 0) return malformed("inlined patch", key);
  return InlinedKeyParts{.inode = {load_be_64(key, 0)},
                         .index = {load_be_64(key, 8)},
                         .version = {load_be_64(key, 16)},
                         .offset = static_cast<std::uint32_t>(load_be_64(key, 20))};
}

}  // namespace nacre::metadata
