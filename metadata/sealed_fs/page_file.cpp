// SPDX-License-Identifier: Apache-2.0
// Reading and writing table files page by page.
#include "metadata/sealed_fs/page_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_engine/base/check.h"
#include "gpu_engine/checksum/crc32.h"
#include "metadata/sealed_fs/page_layout.h"

namespace nacre::metadata {

namespace {

tl::unexpected<Error> not_of_a_table(std::string_view path, std::uint64_t stored_size) {
  return fail_in_file(ErrorCode::corrupt, path,
                      fmt::format("no table file has {} bytes: it was cut or grew", stored_size));
}

constexpr std::size_t page_output_size_bytes = 256u << 10;  // of one write
constexpr std::uint64_t read_pages_max = 64;                // of one read

std::uint32_t page_crc(const FileSalt& salt, std::uint64_t page, ByteView sealed_and_state) {
  std::array<Byte, 8> index;
  store_le(index.data(), page);
  return engine::crc32(engine::crc32(engine::crc32(0, salt), index), sealed_and_state);
}

std::array<Byte, 12> page_fields(std::uint64_t page, std::uint32_t state) {
  std::array<Byte, 12> fields;
  store_le(&fields[0], page);
  store_le(&fields[8], state);
  return fields;
}

}  // namespace

std::optional<PageView> parse_page(const FileSalt& salt, std::uint64_t page, bool is_last,
                                   ByteView stored) {
  const ByteView covered = stored.first(stored.size() - 4);
  if (page_crc(salt, page, covered) != load_le<std::uint32_t>(&stored[covered.size()])) {
    return std::nullopt;
  }
  PageView view;
  const std::size_t plain_size = stored.size() - page_overhead_bytes;
  view.ciphertext = stored.first(plain_size);
  view.tag = stored.subspan(plain_size, page_tag_size_bytes);
  view.state = load_le<std::uint32_t>(&stored[plain_size + page_tag_size_bytes]);
  if (((view.state & page_final_bit) != 0) != is_last) return std::nullopt;
  return view;
}

PageReader::PageReader(std::unique_ptr<BackingFile> file, FileSeal seal, std::uint64_t sealed_size)
    : file_(std::move(file)),
      seal_(std::move(seal)),
      sealed_size_(sealed_size),
      plain_size_(sealed_size) {}

Result<std::uint64_t> table_content_size(BackingDirectory& directory, std::string_view path,
                                         const KeyTree& keys) {
  NACRE_ASSIGN(const auto format, keys.epoch_format(keys.current_epoch_number()));
  if (format != EpochFormat::one) {
    NACRE_ASSIGN(const auto reader, PageReader::open(directory, path, keys));
    return reader->size();
  }
  NACRE_ASSIGN(const std::uint64_t stored, directory.file_size(path));
  const auto size = plain_size_of(stored);
  if (!size) return not_of_a_table(path, stored);
  return *size;
}

Result<std::unique_ptr<PageReader>> PageReader::open(BackingDirectory& directory,
                                                     std::string_view path, const KeyTree& keys) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read));
  std::array<Byte, file_header_size_bytes> header;
  NACRE_ASSIGN(const std::size_t got, file->read(0, header));
  NACRE_ASSIGN(FileSeal seal, FileSeal::open(keys, path, ByteView(header).first(got)));
  NACRE_ASSIGN(const std::uint64_t stored_size, file->size());
  const auto pages = full_page_count(stored_size);
  auto sealed_size = plain_size_of(stored_size);
  if (seal.header().is_padded && !pages) sealed_size.reset();
  if (!sealed_size) return not_of_a_table(path, stored_size);
  std::unique_ptr<PageReader> reader(
      new PageReader(std::move(file), std::move(seal), *sealed_size));
  {
    const LockGuard lock(reader->mutex_);
    NACRE_TRY(reader->check_last_page());
  }
  return reader;
}

// The last page says that it is the last, so a cut at a page boundary shows at once.
Result<void> PageReader::check_last_page() {
  const std::uint64_t last = page_count(sealed_size_) - 1;
  Bytes end(page_overhead_bytes + plain_bytes_of_page(last, sealed_size_));
  NACRE_ASSIGN(const std::size_t end_size, file_->read(page_offset(last), end));
  Bytes plain(plain_bytes_of_page(last, sealed_size_));
  if (end_size != end.size()) {
    return fail_in_file(ErrorCode::corrupt, seal_.path(), "the file was cut");
  }
  NACRE_TRY(open_pages(end, last, page_begin(last), plain));
  return seal_.header().is_padded ? take_padded_size(plain) : Result<void>();
}

Result<void> PageReader::take_padded_size(ByteView last_page) {
  const std::size_t field = last_page.size() - padded_size_field_bytes;
  const auto size = load_le<std::uint64_t>(&last_page[field]);
  const std::uint64_t begin = sealed_size_ - last_page.size();
  const bool fits =
      size <= begin + field && padded_page_count(size) == page_count(sealed_size_) &&
      std::all_of(last_page.begin() + static_cast<std::ptrdiff_t>(size < begin ? 0 : size - begin),
                  last_page.begin() + static_cast<std::ptrdiff_t>(field),
                  [](Byte byte) { return byte == 0; });
  if (!fits) {
    return fail_in_file(ErrorCode::tampered, seal_.path(),
                        "its padding is not what follows from the size that it gives");
  }
  plain_size_ = size;
  return {};
}

Result<void> PageReader::open_pages(ByteView stored, std::uint64_t first, std::uint64_t offset,
                                    MutableByteView out) const {
  const std::uint64_t last = page_count(sealed_size_) - 1;
  std::array<Byte, page_plain_bytes> partial;
  std::uint64_t page = first;
  for (std::size_t at = 0; at < stored.size(); page++) {
    const std::size_t plain_size = plain_bytes_of_page(page, sealed_size_);
    const std::size_t stored_size = plain_size + page_overhead_bytes;
    const auto view =
        parse_page(seal_.header().salt, page, page == last, stored.subspan(at, stored_size));
    if (!view) {
      return fail_in_file(
          ErrorCode::corrupt, seal_.path(),
          fmt::format("page {} at offset {}: the checksum is wrong", page, page_offset(page)));
    }
    at += stored_size;
    // If the whole page is wanted, it goes straight into out.
    const std::uint64_t begin = page_begin(page);
    const bool whole = begin >= offset && begin + plain_size <= offset + out.size();
    const MutableByteView plain = whole ? out.subspan(begin - offset, plain_size)
                                        : MutableByteView(partial).first(plain_size);
    const std::uint32_t generation = view->state & ~page_final_bit;
    if (!seal_.open(page, generation, page_fields(page, view->state), view->ciphertext, view->tag,
                    plain)) {
      return fail_in_file(ErrorCode::tampered, seal_.path(),
                          fmt::format("page {} at offset {}: the authentication tag is wrong", page,
                                      page_offset(page)));
    }
    if (!whole) {
      const std::uint64_t from = std::max(begin, offset);
      const std::uint64_t to = std::min(begin + plain_size, offset + out.size());
      if (from < to) {
        std::copy_n(partial.begin() + static_cast<std::ptrdiff_t>(from - begin), to - from,
                    out.begin() + static_cast<std::ptrdiff_t>(from - offset));
      }
    }
  }
  return {};
}

Result<void> PageReader::reopen(BackingDirectory& directory, const KeyTree& keys) {
  std::string path;
  {
    const SharedLock lock(mutex_);
    path = seal_.path();
  }
  NACRE_ASSIGN(const auto fresh, open(directory, path, keys));
  if (fresh->plain_size_ != plain_size_) {
    return fail_in_file(ErrorCode::corrupt, path, "the file has another size than it had");
  }
  const LockGuard lock(mutex_);
  const LockGuard fresh_lock(fresh->mutex_);
  file_ = std::move(fresh->file_);
  seal_ = fresh->seal_;
  sealed_size_ = fresh->sealed_size_;
  return {};
}

Result<std::size_t> PageReader::read(std::uint64_t offset, MutableByteView out) const {
  const SharedLock lock(mutex_);
  return read_locked(offset, out);
}

Result<std::size_t> PageReader::read_locked(std::uint64_t offset, MutableByteView out) const {
  if (offset >= plain_size_ || out.empty()) return 0;
  out = out.first(std::min<std::uint64_t>(out.size(), plain_size_ - offset));
  const std::uint64_t last = page_of(offset + out.size() - 1);
  Bytes stored;
  for (std::uint64_t page = page_of(offset); page <= last;) {
    const std::uint64_t count = std::min(read_pages_max, last - page + 1);
    const std::uint64_t final_page = page + count - 1;
    const std::uint64_t end = page_offset(final_page) +
                              plain_bytes_of_page(final_page, sealed_size_) + page_overhead_bytes;
    stored.resize(end - page_offset(page));
    NACRE_ASSIGN(const std::size_t got, file_->read(page_offset(page), stored));
    if (got != stored.size()) {
      return fail_in_file(ErrorCode::corrupt, seal_.path(), "the file was cut while it was open");
    }
    const std::uint64_t from = std::max(offset, page_begin(page));
    const std::uint64_t to = std::min(offset + out.size(), page_begin(page + count));
    NACRE_TRY(open_pages(stored, page, from, out.subspan(from - offset, to - from)));
    page += count;
  }
  return out.size();
}

PageWriter::PageWriter(std::unique_ptr<BackingFile> file, FileSeal seal)
    : file_(std::move(file)), seal_(std::move(seal)) {
  page_.reserve(page_plain_bytes);
  output_.reserve(page_output_size_bytes + page_size_bytes);
  const auto header = encode(seal_.header());
  output_.assign(header.begin(), header.end());
}

Result<std::unique_ptr<PageWriter>> PageWriter::create(BackingDirectory& directory,
                                                       std::string_view path, const KeyTree& keys,
                                                       engine::Padding padding) {
  NACRE_ASSIGN(FileSeal seal, FileSeal::create(keys, path, padding));
  return create_at(directory, path, std::move(seal));
}

Result<std::unique_ptr<PageWriter>> PageWriter::create_at(BackingDirectory& directory,
                                                          std::string_view path, FileSeal seal) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::create_or_empty));
  return std::unique_ptr<PageWriter>(new PageWriter(std::move(file), std::move(seal)));
}

Result<void> PageWriter::append(ByteView bytes) {
  if (error_) return tl::unexpected<Error>(*error_);
  if (bytes.empty()) return {};
  if (finished_) {  // go back to the page that was the last
    output_offset_ = page_offset(page_index_);
    next_page_generation_ = generation_;
    finished_ = false;
  }
  while (!bytes.empty()) {
    if (page_.size() == page_plain_bytes) {  // more follows, so it is not the last
      seal_page(page_index_, page_, false);
      page_.clear();
      page_index_++;
      generation_ = next_page_generation_;
      if (output_.size() >= page_output_size_bytes) NACRE_TRY(write_out());
    }
    const std::size_t size = std::min(bytes.size(), page_plain_bytes - page_.size());
    page_.insert(page_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    bytes = bytes.subspan(size);
  }
  return {};
}

void PageWriter::seal_page(std::uint64_t index, ByteView plain, bool is_final) {
  // Page and generation are the nonce.
  NACRE_CHECK(generation_ < page_final_bit, "page {} was sealed {} times", index, generation_);
  const std::uint32_t state = generation_ | (is_final ? page_final_bit : 0);
  const std::size_t begin = output_.size();
  output_.resize(begin + plain.size() + page_overhead_bytes);
  const MutableByteView stored = MutableByteView(output_).subspan(begin);
  const std::size_t tag_offset = plain.size();
  seal_.seal(index, generation_, page_fields(index, state), plain, stored.first(tag_offset),
             stored.subspan(tag_offset, page_tag_size_bytes));
  store_le(&stored[tag_offset + page_tag_size_bytes], state);
  const std::size_t covered = stored.size() - 4;
  store_le(&stored[covered], page_crc(seal_.header().salt, index, stored.first(covered)));
}

// Seals the current page, and those after it that hold only padding. All get the current page's
// generation.
void PageWriter::seal_padded_end() {
  const std::uint64_t size = page_begin(page_index_) + page_.size();
  const std::uint64_t last = padded_page_count(size) - 1;
  Bytes plain = page_;
  for (std::uint64_t page = page_index_; page <= last; page++) {
    plain.resize(page_plain_bytes);
    if (page == last) store_le(&plain[page_plain_bytes - padded_size_field_bytes], size);
    seal_page(page, plain, page == last);
    plain.clear();
  }
}

Result<void> PageWriter::write_out() {
  if (output_.empty()) return {};
  NACRE_TRY(remember(file_->write(output_offset_, ByteView(output_))));
  output_offset_ += output_.size();
  output_.clear();
  return {};
}

Result<void> PageWriter::finish() {
  if (error_) return tl::unexpected<Error>(*error_);
  if (finished_) return {};
  if (seal_.header().is_padded) {
    seal_padded_end();
  } else {
    seal_page(page_index_, page_, true);
  }
  generation_++;
  finished_ = true;
  return write_out();
}

Result<void> PageWriter::sync() {
  NACRE_TRY(finish());
  return remember(file_->sync());
}

Result<void> PageWriter::close() {
  return finish();
}

void PageWriter::start_writeback() {
  if (output_offset_ <= writeback_offset_) return;
  file_->start_writeback(writeback_offset_, output_offset_ - writeback_offset_);
  writeback_offset_ = output_offset_;
}

Result<void> PageWriter::remember(Result<void> result) {
  if (!result) error_ = result.error();
  return result;
}

}  // namespace nacre::metadata
