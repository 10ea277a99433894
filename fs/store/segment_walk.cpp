// SPDX-License-Identifier: Apache-2.0
#include "fs/store/segment_walk.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "gpu_engine/base/limits.h"

namespace nacre::fs {

namespace {

// The maximum size of a record: a chunk, its headers, its tag, and Padmé's 12 percent.
constexpr std::uint64_t record_size_bytes_max =
    chunk_size_bytes_max + chunk_size_bytes_max / 8 + 4096;
constexpr std::size_t window_size_bytes = 4u << 20;
static_assert(window_size_bytes >= 2 * record_size_bytes_max);
// The places that a medium cannot read are found in blocks of this size.
constexpr std::size_t block_size_bytes = 4096;
// The search for a good record computes CRCs of at most this many bytes. A hostile segment full of
// headers must not cost the square of its size.
constexpr std::uint64_t search_budget_bytes = 256u << 20;

// The bytes [0, end) of a file through a window that moves forward. Bytes that cannot be read are
// zeros, which no header has.
class Window {
 public:
  Window(metadata::BackingFile& file, std::uint64_t end) : file_(file), end_(end) {}

  // The bytes from offset on: size of them, or fewer at the end of the file.
  ByteView view(std::uint64_t offset, std::size_t size) {
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_ - offset));
    if (offset < begin_ || offset + size > begin_ + filled_) load(offset);
    return ByteView(buffer_).subspan(static_cast<std::size_t>(offset - begin_), size);
  }
  // The system's error, if some of these bytes could not be read.
  std::optional<Error> read_error_in(std::uint64_t offset, std::uint64_t size) const {
    const auto block =
        bad_blocks_.lower_bound(offset < block_size_bytes ? 0 : offset - block_size_bytes + 1);
    if (block == bad_blocks_.end() || *block >= offset + size) return {};
    return read_error_;
  }

 private:
  void load(std::uint64_t offset) {
    begin_ = offset;
    filled_ = static_cast<std::size_t>(std::min<std::uint64_t>(window_size_bytes, end_ - offset));
    if (buffer_.size() < filled_) buffer_.resize(filled_);
    const MutableByteView all(buffer_.data(), filled_);
    if (read_all(offset, all)) return;
    for (std::size_t at = 0; at < filled_; at += block_size_bytes) {
      const auto block = all.subspan(at, std::min(block_size_bytes, filled_ - at));
      if (read_all(offset + at, block)) continue;
      std::fill(block.begin(), block.end(), Byte{0});
      bad_blocks_.insert(offset + at);
    }
  }

  bool read_all(std::uint64_t offset, MutableByteView out) {
    const auto got = file_.read(offset, out);
    if (got && *got == out.size()) return true;
    if (!got) {
      read_error_ = got.error();
      return false;
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(*got), out.end(), Byte{0});
    return true;
  }

  metadata::BackingFile& file_;
  const std::uint64_t end_;
  Bytes buffer_;
  std::uint64_t begin_ = 0;
  std::size_t filled_ = 0;
  std::set<std::uint64_t> bad_blocks_;  // offsets of blocks of block_size_bytes
  std::optional<Error> read_error_;     // the last one
};

class Walk {
 public:
  Walk(metadata::BackingFile& file, const SegmentBounds& bounds, SegmentVisitor& visitor)
      : bounds_(bounds),
        end_(std::min(bounds.file_size, bounds.committed_size.value_or(bounds.file_size))),
        window_(file, end_),
        visitor_(visitor) {}

  Result<std::uint64_t> run() {
    std::uint64_t offset = bounds_.begin;
    while (offset < end_) {
      const auto header = check_record(offset);
      if (header) {
        NACRE_TRY(visitor_.record(offset, *header, window_.view(offset, header->stored_size)));
        visitor_.passed(header->stored_size);
        offset += header->stored_size;
        continue;
      }
      const std::uint64_t next = next_start(offset);
      if (std::exchange(gave_up_, false)) NACRE_TRY(visitor_.gave_up(offset));
      visitor_.passed(next - offset);
      if (next == end_ && !bounds_.committed_size) return offset;
      // The error is that of the read, if there was one: zeros stand for bytes that could not be
      // read.
      const auto read_error = window_.read_error_in(offset, next - offset);
      NACRE_TRY(visitor_.damage(offset, next - offset, read_error.value_or(header.error())));
      offset = next;
    }
    return offset;
  }

 private:
  Result<engine::RecordHeader> check_record(std::uint64_t offset) {
    NACRE_ASSIGN(const auto header,
                 engine::parse_record_header(window_.view(offset, record_size_bytes_max)));
    NACRE_TRY(engine::verify_record_crc(window_.view(offset, header.stored_size)));
    NACRE_TRY(check_reach(offset, header.stored_size));
    NACRE_TRY(visitor_.judge(header, window_.view(offset, header.stored_size)));
    return header;
  }
  // Fails if the bytes reach over a good record that a row names, and no row names them.
  Result<> check_reach(std::uint64_t offset, std::uint64_t size) {
    const auto& anchors = bounds_.anchors;
    auto anchor = std::lower_bound(anchors.begin(), anchors.end(), offset);
    if (anchor != anchors.end() && *anchor == offset) return {};
    for (; anchor != anchors.end() && *anchor < std::min(offset + size, end_); ++anchor) {
      const auto within = engine::parse_record_header(window_.view(*anchor, record_size_bytes_max));
      if (!within || within->stored_size > search_budget_) continue;
      search_budget_ -= within->stored_size;
      if (!engine::verify_record_crc(window_.view(*anchor, within->stored_size))) continue;
      return fail(ErrorCode::corrupt,
                  fmt::format("what stands here reaches over the record at offset {}", *anchor));
    }
    return {};
  }

  // The first offset past this one at which a good record begins, or at which rows say that a
  // record begins; otherwise the end.
  std::uint64_t next_start(std::uint64_t offset) {
    const auto anchor = std::upper_bound(bounds_.anchors.begin(), bounds_.anchors.end(), offset);
    const std::uint64_t limit = anchor == bounds_.anchors.end() ? end_ : std::min(*anchor, end_);
    std::array<Byte, 4> magic;
    store_le(magic.data(), engine::record_magic);
    for (std::uint64_t at = offset + 1; at < limit;) {
      const auto view = window_.view(at, window_size_bytes / 2);
      const auto found = std::search(view.begin(), view.end(), magic.begin(), magic.end());
      if (found == view.end()) {
        if (view.size() < magic.size()) break;
        at += view.size() - (magic.size() - 1);
        continue;
      }
      at += static_cast<std::uint64_t>(found - view.begin());
      if (at >= limit) break;
      const auto header = engine::parse_record_header(window_.view(at, record_size_bytes_max));
      if (header) {
        if (header->stored_size > search_budget_) {
          gave_up_ = true;
          return limit;
        }
        search_budget_ -= header->stored_size;
        if (check_record(at)) return at;
      }
      ++at;
    }
    return limit;
  }

  const SegmentBounds& bounds_;
  const std::uint64_t end_;
  Window window_;
  SegmentVisitor& visitor_;
  std::uint64_t search_budget_ = search_budget_bytes;
  bool gave_up_ = false;
};

}  // namespace

Result<metadata::SegmentHeader> read_segment_header(metadata::BackingFile& file) {
  std::array<Byte, metadata::segment_header_size_bytes> bytes{};
  NACRE_ASSIGN(const auto got, file.read(0, bytes));
  if (got < bytes.size()) {
    return fail(ErrorCode::corrupt,
                fmt::format("the file ends within its header, after {} bytes", got));
  }
  return metadata::decode_segment_header(bytes);
}

Result<metadata::SegmentHeader> read_segment_header(
    metadata::BackingFile& file, const std::optional<engine::VolumeId>& volume_id,
    metadata::SegmentNumber number) {
  NACRE_ASSIGN(const auto header, read_segment_header(file));
  if (volume_id && header.volume_id != *volume_id) {
    return fail(ErrorCode::tampered, "the segment comes from another volume");
  }
  if (header.segment != number) {
    return fail(ErrorCode::tampered,
                fmt::format("the file holds segment {}", header.segment.value));
  }
  return header;
}

Result<std::uint64_t> walk_segment(metadata::BackingFile& file, const SegmentBounds& bounds,
                                   SegmentVisitor& visitor) {
  return Walk(file, bounds, visitor).run();
}

std::optional<metadata::SegmentNumber> segment_number_of(std::string_view file_name) {
  constexpr std::string_view suffix = ".seg";
  if (!file_name.ends_with(suffix)) return std::nullopt;
  const auto digits = file_name.substr(0, file_name.size() - suffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() < 12) {
    return std::nullopt;
  }
  return metadata::SegmentNumber{number};
}

}  // namespace nacre::fs
