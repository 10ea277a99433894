// SPDX-License-Identifier: Apache-2.0
// Reads a table page by page, and a frames file through a window.
#include "metadata/sealed_fs/database_scrub.h"

#include <fmt/format.h>

#include "metadata/sealed_fs/file_header.h"
#include "metadata/sealed_fs/file_seal.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/page_layout.h"
#include "metadata/sealed_fs/reseal_files.h"

namespace nacre::metadata {
namespace {

constexpr std::uint64_t pages_of_one_read = 256;

using Passed = std::function<Result<void>(std::uint64_t size)>;

Result<void> scrub_pages(BackingFile& file, std::string_view path, const FileHeader& header,
                         std::uint64_t stored_size, const Passed& passed) {
  auto plain_size = plain_size_of(stored_size);
  if (header.is_padded && !full_page_count(stored_size)) plain_size.reset();
  if (!plain_size) {
    return fail_in_file(ErrorCode::corrupt, path,
                        fmt::format("no table file has {} bytes: it was cut or grew", stored_size));
  }
  const std::uint64_t count = page_count(*plain_size);
  Bytes stored;
  for (std::uint64_t first = 0; first < count; first += pages_of_one_read) {
    stored.resize(std::min(pages_of_one_read * page_size_bytes, stored_size - page_offset(first)));
    NACRE_ASSIGN(const std::size_t got, file.read(page_offset(first), stored));
    if (got != stored.size()) {
      return fail_in_file(ErrorCode::corrupt, path, "the file was cut while it was read");
    }
    for (std::uint64_t page = first; page < std::min(count, first + pages_of_one_read); page++) {
      const std::size_t at = page_offset(page) - page_offset(first);
      const std::size_t size = plain_bytes_of_page(page, *plain_size) + page_overhead_bytes;
      if (!parse_page(header.salt, page, page + 1 == count, ByteView(stored).subspan(at, size))) {
        return fail_in_file(
            ErrorCode::corrupt, path,
            fmt::format("page {} at offset {}: the checksum is wrong", page, page_offset(page)));
      }
    }
    if (passed) NACRE_TRY(passed(got));
  }
  return {};
}

Result<FileHeader> header_of(std::string_view path, FileClass file_class, ByteView bytes) {
  auto header = decode_file_header(bytes);
  if (!header) return add_context(header.error(), path);
  if (header->file_class == file_class) return header;
  return fail_in_file(ErrorCode::corrupt, path,
                      fmt::format("the file was written as a {}", to_string(header->file_class)));
}

Result<void> scrub_frames(std::string_view path, FileClass file_class, FrameBytes& stored) {
  const bool is_unborn = is_unborn_log(path, stored);
  const ByteView head = stored.view(0, file_header_size_bytes);
  if (stored.error()) return tl::unexpected(*stored.error());
  if (is_unborn) return {};
  NACRE_ASSIGN(const FileHeader header, header_of(path, file_class, head));
  NACRE_TRY(walk_frames(path, header, stored, nullptr, nullptr));
  return {};
}

}  // namespace

Result<std::optional<std::uint32_t>> database_file_epoch(BackingDirectory& directory,
                                                         const std::string& path) {
  return epoch_of_file(directory, path);
}

Result<std::uint64_t> scrub_database_file(BackingDirectory& directory, std::string_view path,
                                          const Passed& passed) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read));
  NACRE_ASSIGN(const std::uint64_t size, file->size());
  // Cached pages say nothing about the medium, so they are dropped first.
  file->advise(0, size, false);
  const FileClass file_class = parse_file_name(path).file_class;
  if (file_class != FileClass::table) {
    NACRE_ASSIGN(FrameBytes stored, FrameBytes::of(std::move(file), path));
    NACRE_TRY(scrub_frames(path, file_class, stored));
    if (passed) NACRE_TRY(passed(size));
    return size;
  }
  Bytes head(std::min<std::uint64_t>(size, file_header_size_bytes));
  NACRE_ASSIGN(const std::size_t got, file->read(0, head));
  head.resize(got);
  NACRE_ASSIGN(const FileHeader header, header_of(path, file_class, head));
  NACRE_TRY(scrub_pages(*file, path, header, size, passed));
  return size;
}

Result<std::uint64_t> scrub_database_file(BackingDirectory& directory, std::string_view path) {
  return scrub_database_file(directory, path, {});
}

}  // namespace nacre::metadata
