// SPDX-License-Identifier: Apache-2.0
#include "metadata/sealed_fs/frame_bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "metadata/sealed_fs/file_seal.h"

namespace nacre::metadata {
namespace {

constexpr std::size_t window_size_bytes = 1u << 20;
static_assert(window_size_bytes >= 2 * frame_size_bytes_max);

}  // namespace

Result<FrameBytes> FrameBytes::open(BackingDirectory& directory, std::string_view path) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read));
  return of(std::move(file), path);
}

Result<FrameBytes> FrameBytes::of(std::unique_ptr<BackingFile> file, std::string_view path) {
  FrameBytes bytes;
  NACRE_ASSIGN(bytes.size_, file->size());
  if (bytes.size_ > frames_file_size_bytes_max(parse_file_name(path).file_class)) {
    return fail_in_file(ErrorCode::corrupt, path,
                        fmt::format("{} bytes are more than such a file ever holds", bytes.size_));
  }
  bytes.path_ = path;
  bytes.file_ = std::move(file);
  return bytes;
}

ByteView FrameBytes::view(std::uint64_t offset, std::size_t size) {
  offset = std::min(offset, size_);
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - offset));
  if (!file_) return memory_.subspan(static_cast<std::size_t>(offset), size);
  if (offset < window_begin_ || offset + size > window_begin_ + window_.size()) load(offset);
  return ByteView(window_).subspan(static_cast<std::size_t>(offset - window_begin_), size);
}

void FrameBytes::load(std::uint64_t offset) {
  const auto size =
      static_cast<std::size_t>(std::min<std::uint64_t>(window_size_bytes, size_ - offset));
  window_begin_ = offset;
  window_.resize(size);
  const auto got = file_->read(offset, window_);
  if (got && *got == size) return;
  std::fill(window_.begin(), window_.end(), Byte{0});
  if (error_) return;
  error_ =
      got ? fail_in_file(ErrorCode::io, path_,
                         fmt::format("only {} of its {} bytes could be read", offset + *got, size_))
                .value()
          : got.error();
}

std::uint64_t FrameBytes::find_magic(std::uint64_t offset) {
  constexpr std::size_t magic_size_bytes = 4;
  while (offset < size_) {
    const ByteView bytes = view(offset, window_size_bytes / 2);
    const std::size_t at = find_frame_magic(bytes, 0);
    if (at < bytes.size()) return offset + at;
    if (offset + bytes.size() == size_) break;
    // a magic may begin in these bytes and end after them
    offset += bytes.size() - (magic_size_bytes - 1);
  }
  return size_;
}

bool FrameBytes::is_unborn_log() {
  if (decode_file_header(view(0, file_header_size_bytes))) return false;
  return find_magic(0) == size_;
}

bool SearchBudget::take(ByteView bytes) {
  if (bytes.size() < frame_overhead_bytes) return true;
  const std::uint64_t plain_size = load_le<std::uint32_t>(&bytes[4]);
  if (plain_size > frame_padded_bytes_max) return true;  // costs nothing
  const std::uint64_t cost = frame_overhead_bytes + plain_size;
  if (cost > left_bytes_) return false;
  left_bytes_ -= cost;
  return true;
}

}  // namespace nacre::metadata
