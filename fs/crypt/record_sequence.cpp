// SPDX-License-Identifier: Apache-2.0
#include "fs/crypt/record_sequence.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre::fs {

std::string cut_off_text(std::uint64_t whole_record_count) {
  return fmt::format("the container is cut off: its end is missing (whole records: {})",
                     whole_record_count);
}

Result<ContainerHeader> read_container_start(const ReadContainer& read, Bytes& keyring_text) {
  std::array<Byte, container_header_size_bytes> bytes;
  NACRE_ASSIGN(const std::size_t got, read(bytes));
  if (got == 0) return fail(ErrorCode::corrupt, "the file is empty, so it is not a container");
  NACRE_ASSIGN(const auto header, parse_container_header(ByteView(bytes).first(got)));
  keyring_text.resize(header.keyring_size);
  NACRE_ASSIGN(const std::size_t text_size, read(keyring_text));
  if (text_size < keyring_text.size()) return fail(ErrorCode::corrupt, cut_off_text(0));
  return header;
}

Result<std::size_t> RecordSequence::next_record_size(ByteView bytes) {
  const auto where = [&] { return fmt::format("record {}", count_ + 1); };
  if (bytes.size() < engine::record_header_size_bytes) return std::size_t{0};
  const auto stored_size =
      load_le<std::uint32_t>(bytes.data() + offsetof(engine::RecordHeader, stored_size));
  auto checked = engine::check_record_header(bytes);
  if (!checked) {
    // The record may only look wrong because it is not here as a whole yet.
    const bool is_whole = bytes.size() >= engine::record_size_bytes_max;
    const bool is_plausible = stored_size > bytes.size() &&
                              stored_size <= engine::record_size_bytes_max &&
                              load_le<std::uint32_t>(bytes.data()) == engine::record_magic;
    if (is_plausible && !is_whole) return std::size_t{0};
    return fail(checked.error().code, fmt::format("{}: {}", where(), checked.error().text));
  }
  const ContainerPlace place = container_place(suite_, count_);
  const bool fits = count_ == 0 || checked->salt == container_salt(first_salt_, place.session);
  if (!fits || checked->epoch != container_epoch || checked->counter != place.counter) {
    if (const auto crc = engine::check_record_crc(bytes); !crc) {
      return fail(crc.error().code, fmt::format("{}: {}", where(), crc.error().text));
    }
    return fail(ErrorCode::tampered,
                fits ? fmt::format("{} is not the record that belongs at this place: records were "
                                   "moved, left out or repeated",
                                   where())
                     : fmt::format("{} belongs to another container", where()));
  }
  seen_salt_ = checked->salt;
  return std::size_t{stored_size};
}

bool RecordSequence::take() {
  const std::uint64_t session = container_place(suite_, count_).session;
  const bool is_other = count_ == 0 || session != session_;
  if (count_ == 0) first_salt_ = seen_salt_;
  session_ = session;
  salt_ = seen_salt_;
  ++count_;
  return is_other;
}

}  // namespace nacre::fs
