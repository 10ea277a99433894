// SPDX-License-Identifier: Apache-2.0
#include "metadata/rescue/table_rescue.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/page_layout.h"

namespace nacre::metadata {

namespace {

constexpr std::uint64_t follow_size_bytes = 5u << 20;  // more than any block takes

std::array<Byte, 12> sealed_page_fields(std::uint64_t page, std::uint32_t state) {
  std::array<Byte, 12> fields;
  store_le(&fields[0], page);
  store_le(&fields[8], state);
  return fields;
}

constexpr std::uint64_t bad_pages_max = 1000;

}  // namespace

TableRescue::TableRescue(std::unique_ptr<BackingFile> file, FileSeal seal,
                         std::uint64_t stored_size)
    : file_(std::move(file)), seal_(std::move(seal)), stored_size_(stored_size) {
  // If the file was cut or grew, its whole pages count.
  if (const auto size = plain_size_of(stored_size)) {
    sealed_size_ = *size;
  } else if (stored_size > first_page_offset) {
    sealed_size_ = (stored_size - first_page_offset) / page_size_bytes * page_plain_bytes;
  }
  plain_size_ = sealed_size_;
  if (seal_.header().is_padded) take_padded_size();
}

// If the last page cannot be read, it is unknown where the content ends: then its blocks are
// followed.
void TableRescue::take_padded_size() {
  if (!full_page_count(stored_size_)) return;
  const auto last = read_page(page_count(sealed_size_) - 1);
  if (!last || last->size() != page_plain_bytes) return;
  const auto size = load_le<std::uint64_t>(&(*last)[page_plain_bytes - padded_size_field_bytes]);
  if (size < sealed_size_ && padded_page_count(size) == page_count(sealed_size_)) {
    plain_size_ = size;
  }
}

Result<std::unique_ptr<TableRescue>> TableRescue::open(BackingDirectory& directory,
                                                       const std::string& path,
                                                       const KeyTree& keys) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read));
  std::array<Byte, file_header_size_bytes> header;
  NACRE_ASSIGN(const std::size_t got, file->read(0, header));
  NACRE_ASSIGN(FileSeal seal, FileSeal::open(keys, path, ByteView(header).first(got)));
  NACRE_ASSIGN(const std::uint64_t size, file->size());
  std::unique_ptr<TableRescue> table(new TableRescue(std::move(file), std::move(seal), size));
  table->find_blocks();
  return table;
}

Result<Bytes> TableRescue::read_page(std::uint64_t page) const {
  const std::size_t plain_size = plain_bytes_of_page(page, sealed_size_);
  Bytes stored(plain_size + page_overhead_bytes);
  NACRE_ASSIGN(const std::size_t got, file_->read(page_offset(page), stored));
  const auto bad = [&](ErrorCode code, std::string_view what) {
    return fail_in_file(code, path(),
                        fmt::format("page {} at offset {}: {}", page, page_offset(page), what));
  };
  if (got != stored.size()) return bad(ErrorCode::corrupt, "the file was cut");
  // If the file was cut, its last page says that it is not the last; the tag covers that.
  auto view = parse_page(seal_.header().salt, page, false, stored);
  if (!view) view = parse_page(seal_.header().salt, page, true, stored);
  if (!view) return bad(ErrorCode::corrupt, "the checksum is wrong");
  Bytes plain(plain_size);
  if (!seal_.open(page, view->state & ~page_final_bit, sealed_page_fields(page, view->state),
                  view->ciphertext, view->tag, plain)) {
    return bad(ErrorCode::tampered, "the authentication tag is wrong");
  }
  return plain;
}

Result<Bytes> TableRescue::read(std::uint64_t offset, std::uint64_t size) const {
  if (offset > plain_size_ || size > plain_size_ - offset) {
    return fail_in_file(ErrorCode::corrupt, path(), "the file was cut");
  }
  Bytes out;
  out.reserve(size);
  while (out.size() < size) {
    const std::uint64_t at = offset + out.size();
    NACRE_ASSIGN(const Bytes plain, read_page(page_of(at)));
    const std::size_t from = at - page_begin(page_of(at));
    const std::size_t take = std::min<std::uint64_t>(plain.size() - from, size - out.size());
    out.insert(out.end(), plain.begin() + static_cast<std::ptrdiff_t>(from),
               plain.begin() + static_cast<std::ptrdiff_t>(from + take));
  }
  return out;
}

Bytes TableRescue::read_good(std::uint64_t offset, std::uint64_t size_max) const {
  Bytes out;
  const std::uint64_t end = std::min(plain_size_, offset + size_max);
  while (offset + out.size() < end) {
    const std::uint64_t at = offset + out.size();
    const auto plain = read_page(page_of(at));
    if (!plain) break;
    const auto from = static_cast<std::ptrdiff_t>(at - page_begin(page_of(at)));
    out.insert(out.end(), plain->begin() + from, plain->end());
  }
  return out;
}

std::optional<Bytes> TableRescue::read_content(const BlockHandle& handle) const {
  const auto stored = read(handle.offset, handle.size + block_trailer_size_bytes);
  return stored ? expand_block(*stored) : std::nullopt;
}

void TableRescue::find_blocks() {
  const auto end = plain_size_ < table_footer_size_bytes
                       ? fail(ErrorCode::corrupt)
                       : read(plain_size_ - table_footer_size_bytes, table_footer_size_bytes);
  const auto footer = end ? parse_footer(*end) : std::nullopt;
  if (!footer) return follow_blocks();
  const auto index = read_content(footer->index);
  auto blocks = index ? parse_index(*index) : std::nullopt;
  if (blocks) {
    blocks_ = std::move(*blocks);
    knows_all_blocks_ = true;
  } else {
    follow_blocks();
  }
  const auto meta = read_content(footer->meta_index);
  const auto places = meta ? parse_properties(*meta) : std::nullopt;
  const auto place = places && places->contains("rocksdb.properties")
                         ? parse_handle(places->at("rocksdb.properties"))
                         : std::nullopt;
  const auto properties = place ? read_content(*place) : std::nullopt;
  const auto known = properties ? parse_properties(*properties) : std::nullopt;
  if (!known) return;
  if (known->contains("rocksdb.column.family.name")) {
    family_ = known->at("rocksdb.column.family.name");
  }
  const auto noted = known->find("rocksdb.index.key.is.user.key");
  may_split_keys_ = noted == known->end() || noted->second != std::string(1, '\1');
}

void TableRescue::follow_blocks() {
  std::string last_key;
  for (std::uint64_t offset = 0; offset < plain_size_;) {
    // Most blocks take a few pages. A longer one is read again as a whole.
    auto block = parse_front_block(read_good(offset, 16 * page_plain_bytes));
    if (!block) block = parse_front_block(read_good(offset, follow_size_bytes));
    if (!block || block->rows.front().key < last_key) return;
    last_key = block->rows.back().key;
    blocks_.push_back({.offset = offset, .size = block->handle.size});
    offset += block->handle.size + block_trailer_size_bytes;
  }
}

Result<void> TableRescue::check_pages(const std::function<void(const Error&)>& bad_page) {
  const bool is_whole = seal_.header().is_padded ? full_page_count(stored_size_).has_value()
                                                 : plain_size_of(stored_size_).has_value();
  if (!is_whole) {
    bad_page({ErrorCode::corrupt, fmt::format("{}: no table file has {} bytes: it was cut or grew",
                                              path(), stored_size_)});
  }
  std::uint64_t bad_count = 0;
  for (std::uint64_t page = 0; stored_size_ > page_offset(page) && page < page_count(sealed_size_);
       ++page) {
    const auto plain = read_page(page);
    if (plain) continue;
    if (plain.error().code == ErrorCode::out_of_memory) return tl::unexpected(plain.error());
    bad_page(plain.error());
    // The size is not authenticated: a hole of any length would be pages without end.
    if (++bad_count < bad_pages_max) continue;
    bad_page({ErrorCode::corrupt,
              fmt::format("{}: more of its pages may be damaged: {} were, and the rest was not "
                          "looked at",
                          path(), bad_count)});
    break;
  }
  return {};
}

Result<VersionedRows> TableRescue::read_block(std::size_t index) const {
  const BlockHandle& handle = blocks_[index];
  NACRE_ASSIGN(const Bytes stored, read(handle.offset, handle.size + block_trailer_size_bytes));
  const auto content = expand_block(stored);
  auto rows = content ? parse_rows(*content) : std::nullopt;
  if (rows) return std::move(*rows);
  return fail_in_file(ErrorCode::corrupt, path(),
                      fmt::format("the block at {} makes no sense", handle.offset));
}

}  // namespace nacre::metadata
