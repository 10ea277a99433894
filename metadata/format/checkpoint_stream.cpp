// SPDX-License-Identifier: Apache-2.0
#include "metadata/format/checkpoint_stream.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace nacre::metadata {

namespace {

tl::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::corrupt, fmt::format("the checkpoint is malformed: {}", what));
}

// Reads the stream, a part at a time.
class Reader {
 public:
  Reader(const CheckpointRoot& root, const ReadPart& read_part)
      : root_(root), read_part_(read_part) {}

  Result<std::uint8_t> byte() {
    if (at_ == part_.size()) NACRE_TRY(next());
    return part_[at_++];
  }

  Result<std::uint64_t> number(std::uint64_t most) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      NACRE_ASSIGN(const std::uint8_t next, byte());
      const std::uint64_t bits = next & 0x7f;
      if (bits << shift >> shift != bits) break;
      value |= bits << shift;
      if ((next & 0x80) != 0) continue;
      if (value > most || (next == 0 && shift > 0)) break;
      return value;
    }
    return malformed("a number is out of bounds");
  }

  Result<> append(std::string& to, std::size_t size) {
    while (size > 0) {
      if (at_ == part_.size()) NACRE_TRY(next());
      const std::size_t piece = std::min(size, part_.size() - at_);
      to.append(as_text(ByteView(part_).subspan(at_, piece)));
      at_ += piece;
      size -= piece;
    }
    return {};
  }

  bool is_at_end() const { return next_part_ == root_.parts.size() && at_ == part_.size(); }

 private:
  Result<> next() {
    if (next_part_ == root_.parts.size()) return malformed("it ends amid its rows");
    NACRE_ASSIGN(part_, read_part_(next_part_));
    if (part_.size() != root_.parts[next_part_].plain_size || part_.empty()) {
      return malformed("a part has another size than its root says");
    }
    ++next_part_;
    at_ = 0;
    return {};
  }

  const CheckpointRoot& root_;
  const ReadPart& read_part_;
  std::size_t next_part_ = 0;
  Bytes part_;
  std::size_t at_ = 0;
};

// Returns how many rows the section has.
Result<std::uint64_t> read_section(Reader& reader, CheckpointSection section,
                                   const VisitRow& visit) {
  std::string key;
  std::string last_key;
  std::string value;
  for (std::uint64_t count = 0;; ++count) {
    NACRE_ASSIGN(const std::uint64_t shared, reader.number(last_key.size()));
    NACRE_ASSIGN(const std::uint64_t rest, reader.number(checkpoint_key_size_bytes_max - shared));
    if (rest == 0) {
      if (shared != 0) return malformed("a key without an end");
      return count;
    }
    key.assign(last_key, 0, shared);
    NACRE_TRY(reader.append(key, rest));
    if (count > 0 && key <= last_key) return malformed("keys do not ascend");
    NACRE_ASSIGN(const std::uint64_t size, reader.number(checkpoint_value_size_bytes_max));
    value.clear();
    NACRE_TRY(reader.append(value, size));
    NACRE_TRY(visit(section, key, value));
    last_key.swap(key);
  }
}

}  // namespace

void CheckpointWriter::number(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void CheckpointWriter::begin_section(CheckpointSection section) {
  bytes_.push_back(static_cast<char>(section));
  last_key_.clear();
}

void CheckpointWriter::add_row(std::string_view key, std::string_view value) {
  const auto parting = std::mismatch(key.begin(), key.end(), last_key_.begin(), last_key_.end());
  const auto shared = static_cast<std::size_t>(parting.first - key.begin());
  number(shared);
  number(key.size() - shared);
  bytes_.append(key.substr(shared));
  number(value.size());
  bytes_.append(value);
  last_key_.assign(key);
}

void CheckpointWriter::end_section() {
  number(0);
  number(0);
}

void CheckpointWriter::end_stream() {
  bytes_.push_back('\0');
  is_ended_ = true;
}

ByteView CheckpointWriter::next_part() {
  bytes_.erase(0, std::exchange(taken_, 0));
  const std::size_t size = std::min<std::size_t>(bytes_.size(), checkpoint_part_size_bytes);
  if (size < checkpoint_part_size_bytes && !is_ended_) return {};
  taken_ = size;
  return as_bytes(bytes_).first(size);
}

Result<> read_checkpoint(const CheckpointRoot& root, const ReadPart& read_part,
                         const VisitRow& visit) {
  Reader reader(root, read_part);
  for (std::size_t i = 0; i < checkpoint_section_count; ++i) {
    NACRE_ASSIGN(const std::uint8_t section, reader.byte());
    if (section != i + 1) return malformed("a section is missing");
    NACRE_ASSIGN(const std::uint64_t count,
                 read_section(reader, static_cast<CheckpointSection>(section), visit));
    if (count != root.row_counts[i]) return malformed("it has not as many rows as its root says");
  }
  NACRE_ASSIGN(const std::uint8_t end, reader.byte());
  if (end != 0 || !reader.is_at_end()) return malformed("bytes are left over behind its rows");
  return {};
}

}  // namespace nacre::metadata
