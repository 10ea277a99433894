// SPDX-License-Identifier: Apache-2.0
#include "metadata/rescue/table_block.h"

#include <algorithm>

#include "metadata/rescue/byte_reader.h"

namespace nacre::metadata {

namespace {

constexpr Byte compression_none = 0;
constexpr Byte compression_lz4 = 4;
constexpr std::uint32_t format_version = 5;
constexpr std::uint64_t table_magic = 0x88e241b785f4cff7;
constexpr std::size_t table_key_suffix_size = sizeof(std::uint64_t);
// Entries between two restart points of a block of rows.
constexpr std::size_t restart_interval = 16;
// A block holds 8 KiB, or one row: the largest is an extended attribute of 64 KiB, a chunk's row
// or a symbolic link.
constexpr std::size_t block_size_bytes_max = 4u << 20;

// Decodes until plain is full. Returns how many bytes that took.
std::optional<std::size_t> decode_lz4(ByteView coded, MutableByteView plain) {
  std::size_t in = 0;
  std::size_t out = 0;
  const auto length = [&](std::size_t value) -> std::optional<std::size_t> {
    if (value != 15) return value;
    for (;;) {
      if (in == coded.size() || value > plain.size()) return std::nullopt;
      const Byte more = coded[in++];
      value += more;
      if (more != 255) return value;
    }
  };
  while (in < coded.size()) {
    const Byte token = coded[in++];
    const auto literals = length(token >> 4);
    if (!literals || *literals > coded.size() - in || *literals > plain.size() - out)
      return std::nullopt;
    std::copy_n(coded.begin() + static_cast<std::ptrdiff_t>(in), *literals,
                plain.begin() + static_cast<std::ptrdiff_t>(out));
    in += *literals;
    out += *literals;
    if (out == plain.size()) return in;  // a block ends with literals
    if (coded.size() - in < 2) return std::nullopt;
    const std::size_t distance = load_le<std::uint16_t>(&coded[in]);
    in += 2;
    const auto extra = length(token & 15);
    if (!extra || distance == 0 || distance > out) return std::nullopt;
    const std::size_t size = *extra + 4;
    if (size > plain.size() - out) return std::nullopt;
    for (std::size_t i = 0; i < size; ++i, ++out)
      plain[out] = plain[out - distance];
  }
  return std::nullopt;
}

// The LZ4 block that begins here: its plain bytes, and its stored size.
struct Expanded {
  Bytes plain;
  std::size_t stored_size = 0;
};
std::optional<Expanded> expand_lz4(ByteView bytes) {
  ByteReader reader(bytes);
  const std::uint32_t plain_size = reader.varint32();
  if (!reader.is_good() || plain_size == 0 || plain_size > block_size_bytes_max)
    return std::nullopt;
  Expanded expanded{.plain = Bytes(plain_size)};
  const auto size = decode_lz4(bytes.subspan(reader.at()), expanded.plain);
  if (!size) return std::nullopt;
  expanded.stored_size = reader.at() + *size;
  return expanded;
}

// The bytes before the restart points.
std::optional<ByteView> entries_of(ByteView content) {
  if (content.size() < sizeof(std::uint32_t)) return std::nullopt;
  const std::size_t count = load_le<std::uint32_t>(&content[content.size() - 4]);
  if (count == 0 || count > content.size() / 4 - 1) return std::nullopt;
  return content.first(content.size() - 4 * (count + 1));
}

// Reads entries with keys and values, one by one.
class Entries {
 public:
  explicit Entries(ByteView entries) : reader_(entries) {}
  bool next() {
    if (reader_.is_at_end()) return false;
    const std::uint32_t shared = reader_.varint32();
    const std::uint32_t rest_size = reader_.varint32();
    const std::uint32_t value_size = reader_.varint32();
    reader_.require(shared <= key.size());
    const auto rest = reader_.text(rest_size);
    value = reader_.text(value_size);
    if (!reader_.is_good()) return false;
    key.resize(shared);
    key += rest;
    return true;
  }
  bool is_good() const { return reader_.is_good(); }
  std::size_t at() const { return reader_.at(); }

  std::string key;
  std::string_view value;

 private:
  ByteReader reader_;
};

// Adds the row of an entry, which must come after those that are there.
bool add_row(const Entries& entry, VersionedRows& rows) {
  if (entry.key.size() < table_key_suffix_size) return false;
  const std::size_t size = entry.key.size() - table_key_suffix_size;
  const auto suffix = load_le<std::uint64_t>(reinterpret_cast<const Byte*>(&entry.key[size]));
  const Byte type = suffix & 0xff;
  if (type > 1) return false;
  VersionedRow row{.key = entry.key.substr(0, size), .sequence = suffix >> 8, .value = {}};
  if (type == 1) row.value = std::string(entry.value);
  if (type == 0 && !entry.value.empty()) return false;
  if (!rows.empty()) {
    const VersionedRow& last = rows.back();
    if (row.key < last.key || (row.key == last.key && row.sequence >= last.sequence)) return false;
  }
  rows.push_back(std::move(row));
  return true;
}

BlockHandle read_handle(ByteReader& reader) {
  BlockHandle handle;
  handle.offset = reader.varint64();
  handle.size = reader.varint64();
  reader.require(handle.offset < (1ull << 62) && handle.size < (1ull << 40));
  return handle;
}

// Reads rows of a block that is not compressed, until what follows can only be their restart points
// and the block's trailer.
std::optional<FrontBlock> parse_plain_front(ByteView bytes) {
  FrontBlock block;
  Entries entries(bytes);
  std::vector<std::uint32_t> restarts;
  std::size_t count = 0;
  const auto ends_here = [&](std::size_t at) {
    const std::size_t size = 4 * (restarts.size() + 1);
    if (restarts.empty() || bytes.size() - at < size + block_trailer_size_bytes) return false;
    for (std::size_t i = 0; i < restarts.size(); ++i) {
      if (load_le<std::uint32_t>(&bytes[at + 4 * i]) != restarts[i]) return false;
    }
    return load_le<std::uint32_t>(&bytes[at + size - 4]) == restarts.size() &&
           bytes[at + size] == compression_none;
  };
  for (;;) {
    const std::size_t at = entries.at();
    if (at > block_size_bytes_max) return std::nullopt;
    if (ends_here(at)) {
      block.handle.size = at + 4 * (restarts.size() + 1);
      return block;
    }
    if (count++ % restart_interval == 0) {
      restarts.push_back(static_cast<std::uint32_t>(at));
      entries.key.clear();  // nothing is shared with the key before
    }
    if (!entries.next() || !add_row(entries, block.rows)) return std::nullopt;
  }
}

}  // namespace

std::optional<Bytes> expand_block(ByteView stored) {
  if (stored.size() < block_trailer_size_bytes) return std::nullopt;
  const ByteView content = stored.first(stored.size() - block_trailer_size_bytes);
  const Byte compression = stored[content.size()];
  if (compression == compression_none) return Bytes(content.begin(), content.end());
  if (compression != compression_lz4) return std::nullopt;
  auto expanded = expand_lz4(content);
  if (!expanded || expanded->stored_size != content.size()) return std::nullopt;
  return std::move(expanded->plain);
}

std::optional<VersionedRows> parse_rows(ByteView content) {
  const auto bytes = entries_of(content);
  if (!bytes) return std::nullopt;
  VersionedRows rows;
  Entries entries(*bytes);
  while (entries.next()) {
    if (!add_row(entries, rows)) return std::nullopt;
  }
  if (!entries.is_good() || rows.empty()) return std::nullopt;
  return rows;
}

std::optional<std::vector<BlockHandle>> parse_index(ByteView content) {
  const auto bytes = entries_of(content);
  if (!bytes) return std::nullopt;
  std::vector<BlockHandle> handles;
  std::uint64_t end = 0;
  for (ByteReader reader(*bytes); !reader.is_at_end();) {
    reader.require(reader.varint32() == 0);
    reader.sized_text();
    const BlockHandle handle = read_handle(reader);
    reader.require(handle.offset == end);
    if (!reader.is_good()) return std::nullopt;
    end = handle.offset + handle.size + block_trailer_size_bytes;
    handles.push_back(handle);
  }
  return handles;
}

std::optional<std::map<std::string, std::string>> parse_properties(ByteView content) {
  const auto bytes = entries_of(content);
  if (!bytes) return std::nullopt;
  std::map<std::string, std::string> properties;
  Entries entries(*bytes);
  while (entries.next())
    properties.emplace(entries.key, entries.value);
  if (!entries.is_good()) return std::nullopt;
  return properties;
}

std::optional<FrontBlock> parse_front_block(ByteView bytes) {
  if (const auto expanded = expand_lz4(bytes)) {
    const std::size_t size = expanded->stored_size;
    auto rows = parse_rows(expanded->plain);
    if (rows && bytes.size() - size >= block_trailer_size_bytes && bytes[size] == compression_lz4) {
      return FrontBlock{.rows = std::move(*rows), .handle = {.offset = 0, .size = size}};
    }
  }
  return parse_plain_front(bytes);
}

std::optional<TableFooter> parse_footer(ByteView footer) {
  if (footer.size() != table_footer_size_bytes) return std::nullopt;
  if (load_le<std::uint64_t>(&footer[45]) != table_magic ||
      load_le<std::uint32_t>(&footer[41]) != format_version) {
    return std::nullopt;
  }
  ByteReader reader(footer.subspan(1));
  TableFooter found;
  found.meta_index = read_handle(reader);
  found.index = read_handle(reader);
  if (!reader.is_good()) return std::nullopt;
  return found;
}

std::optional<BlockHandle> parse_handle(std::string_view value) {
  ByteReader reader(value);
  const BlockHandle handle = read_handle(reader);
  if (!reader.is_good() || !reader.is_at_end()) return std::nullopt;
  return handle;
}

}  // namespace nacre::metadata
