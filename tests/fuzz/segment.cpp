// SPDX-License-Identifier: Apache-2.0
// Any bytes as a segment file: its header, and the walk along its records. Input: flags, where the
// committed bytes end, two anchors and a block that cannot be read (4 bytes), the segment's header
// (64), then pieces: kind, size (u16), content; of most kinds a record is made, with a right CRC.
//
// Whatever lies there, the walk covers every byte once and in order, and calls nothing a record
// whose CRC is wrong; and where there are only records, and each anchor is at the beginning of one,
// it finds all of them.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "fs/store/segment_walk.h"
#include "gpu_engine/checksum/crc32.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace nacre;
using metadata::segment_header_size_bytes;

constexpr std::size_t segment_crc_at = 52;
constexpr std::size_t block_size_bytes = 4096;

enum : Byte {
  size_is_known = 1,
  has_anchors = 2,
  has_bad_block = 4,
  header_crc_is_right = 8,
};

void require(bool holds) {
  if (!holds) std::abort();
}

class BytesFile final : public metadata::BackingFile {
 public:
  BytesFile(Bytes bytes, std::optional<std::size_t> bad_block)
      : bytes_(std::move(bytes)), bad_block_(bad_block) {}

  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) override {
    if (offset >= bytes_.size()) return 0;
    const std::size_t size = std::min<std::size_t>(out.size(), bytes_.size() - offset);
    if (bad_block_ && offset < (*bad_block_ + 1) * block_size_bytes &&
        offset + size > *bad_block_ * block_size_bytes) {
      return fail(ErrorCode::io, "a bad block");
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), size, out.begin());
    return size;
  }
  Result<void> write(std::uint64_t, std::span<const ByteView>) override { std::abort(); }
  Result<void> sync() override { std::abort(); }
  void start_writeback(std::uint64_t, std::uint64_t) override {}
  void advise(std::uint64_t, std::uint64_t, bool) override {}
  Result<std::uint64_t> size() override { return bytes_.size(); }
  Result<void> truncate(std::uint64_t) override { std::abort(); }
  Result<void> allocate(std::uint64_t) override { std::abort(); }
  const Bytes& bytes() const { return bytes_; }

 private:
  const Bytes bytes_;
  const std::optional<std::size_t> bad_block_;
};

class Cover final : public fs::SegmentVisitor {
 public:
  explicit Cover(const Bytes& bytes) : bytes_(bytes) {}

  Result<> record(std::uint64_t offset, const engine::RecordHeader& header,
                  ByteView record) override {
    require(offset == end && header.stored_size == record.size());
    require(offset + record.size() <= bytes_.size());
    require(std::equal(record.begin(), record.end(),
                       bytes_.begin() + static_cast<std::ptrdiff_t>(offset)));
    require(engine::verify_record_crc(record).has_value());
    end += record.size();
    ++record_count;
    return {};
  }
  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    require(offset == end && size > 0 && !error.message.empty());
    end += size;
    ++damage_count;
    return {};
  }
  void passed(std::uint64_t size) override { passed_bytes += size; }

  std::uint64_t end = segment_header_size_bytes;
  std::uint64_t passed_bytes = 0;
  std::size_t record_count = 0, damage_count = 0;

 private:
  const Bytes& bytes_;
};

// Appends a record of content behind a sound header; content's first byte may bend its size.
bool append_record(Bytes& file, ByteView content, bool is_bent) {
  const std::size_t size =
      std::max(engine::record_size_bytes_min, engine::record_header_size_bytes + content.size());
  Bytes record(size);
  const std::uint32_t bend = is_bent && !content.empty() ? content[0] : 0;
  store_le(&record[0], engine::record_magic);
  record[4] = engine::record_version;
  store_le(&record[8], static_cast<std::uint32_t>(size) + bend);
  store_le(&record[12], std::uint32_t{1});
  std::copy(content.begin(), content.end(), record.begin() + engine::record_header_size_bytes);
  const ByteView all(record);
  store_le(&record[36], engine::crc32(engine::crc32(0, all.first(36)), all.subspan(40)));
  file.insert(file.end(), record.begin(), record.end());
  return bend == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5 + segment_header_size_bytes) return 0;
  const Byte flags = data[0];
  Bytes file(data + 5, data + 5 + segment_header_size_bytes);
  if ((flags & header_crc_is_right) != 0) {
    store_le(&file[segment_crc_at], engine::crc32(0, ByteView(file).first(segment_crc_at)));
  }
  const auto header = metadata::decode_segment_header(file);
  if (header) {
    const auto encoded = metadata::encode(*header);
    require(std::equal(encoded.begin(), encoded.end(), file.begin(), file.end()));
  }
  std::size_t sound_count = 0;
  bool all_sound = true;
  std::set<std::uint64_t> begins;
  ByteView rest(data + 5 + segment_header_size_bytes, size - 5 - segment_header_size_bytes);
  while (rest.size() >= 3) {
    const Byte kind = rest[0];
    const auto content = rest.subspan(
        3, std::min<std::size_t>(load_le<std::uint16_t>(rest.data() + 1), rest.size() - 3));
    rest = rest.subspan(3 + content.size());
    if (kind % 4 == 0) {
      all_sound &= content.empty();
      file.insert(file.end(), content.begin(), content.end());
    } else {
      begins.insert(file.size());
      const bool is_sound = append_record(file, content, kind % 4 == 3);
      sound_count += is_sound ? 1 : 0;
      all_sound &= is_sound;
    }
  }

  const std::uint64_t file_size = file.size();
  const auto place = [&](Byte byte) { return file_size * byte / 255; };
  std::vector<std::uint64_t> anchors;
  if ((flags & has_anchors) != 0) anchors = {place(data[2]), place(data[3])};
  std::sort(anchors.begin(), anchors.end());
  fs::SegmentBounds bounds{.file_size = file_size, .committed_size = {}, .anchors = anchors};
  if ((flags & size_is_known) != 0) bounds.committed_size = place(data[1]) + 1;
  std::optional<std::size_t> bad_block;
  if ((flags & has_bad_block) != 0) bad_block = place(data[4]) / block_size_bytes;
  BytesFile backing(std::move(file), bad_block);
  const auto opened =
      fs::read_segment_header(backing, {}, header ? header->segment : metadata::SegmentNumber{1});
  require(opened.has_value() == (header.has_value() && bad_block != 0u));

  Cover cover(backing.bytes());
  const auto end = fs::walk_segment(backing, bounds, cover);
  require(end.has_value());
  const std::uint64_t limit = std::min(file_size, bounds.committed_size.value_or(file_size));
  require(*end == cover.end);
  require(limit < segment_header_size_bytes || *end <= limit);
  if (bounds.committed_size && limit > segment_header_size_bytes) require(*end == limit);
  if (limit > segment_header_size_bytes) {
    require(cover.passed_bytes == limit - segment_header_size_bytes);
  }
  // A record that reaches over an anchor is none.
  const bool anchors_fit = std::all_of(anchors.begin(), anchors.end(), [&](std::uint64_t anchor) {
    return anchor <= segment_header_size_bytes || anchor >= file_size || begins.contains(anchor);
  });
  if (all_sound && anchors_fit && limit == file_size && !bad_block) {
    require(cover.record_count == sound_count && cover.damage_count == 0);
  }
  return 0;
}
