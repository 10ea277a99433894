// SPDX-License-Identifier: Apache-2.0
// The arithmetic of record sizes and the checks that need no key.
#include "gpu_engine/record/record.h"

#include <bit>

#include "gpu_engine/checksum/crc32.h"

namespace nacre::engine {

// Padmé lets a length keep as many significant bits as its exponent has bits, plus one:
//   e = floor(log2 L), s = floor(log2 e) + 1, and the lowest e - s bits are rounded up to zero.
std::uint64_t padded_size(Padding padding, std::uint64_t body_size) {
  if (padding == Padding::none || body_size < 2) return body_size;
  const int exponent = static_cast<int>(std::bit_width(body_size)) - 1;
  const int significant = static_cast<int>(std::bit_width(static_cast<unsigned>(exponent)));
  const int cleared = exponent - significant;
  if (cleared <= 0) return body_size;
  return round_up(body_size, std::uint64_t{1} << cleared);
}

std::uint64_t sealed_body_size(CipherSuite suite, Padding padding, std::uint64_t body_size) {
  return round_up(padded_size(padding, body_size), plain_unit_bytes(suite));
}

std::size_t record_size_bound(CipherSuite suite, Padding padding, std::size_t plain_size) {
  return record_header_size_bytes +
         sealed_body_size(suite, padding, sizeof(RecordBodyHeader) + plain_size) +
         tag_size_bytes(suite);
}

tl::expected<RecordHeader, RecordFault> check_record_header(ByteView bytes) {
  const auto fault = [](const char* text, ErrorCode code = ErrorCode::corrupt) {
    return tl::unexpected<RecordFault>(RecordFault{code, text});
  };
  if (bytes.size() < record_header_size_bytes) return fault("shorter than a record header");
  const auto header = load_le<RecordHeader>(bytes.data());
  if (header.magic != record_magic) return fault("no record magic");
  if (header.version > record_version)
    return fault("record of a later format version", ErrorCode::unsupported);
  if (header.version != record_version) return fault("record version is not valid");
  if (header.reserved_a != 0 || header.reserved_b != 0)
    return fault("reserved field of the record header is not zero");
  if (header.stored_size < record_size_bytes_min) return fault("record size is too small");
  if (header.stored_size > record_size_bytes_max) return fault("record size is too large");
  if (header.stored_size > bytes.size()) return fault("record is cut short");
  return header;
}

tl::expected<RecordHeader, RecordFault> check_record_crc(ByteView record) {
  const auto header = check_record_header(record);
  if (!header) return header;
  const ByteView stored = record.first(header->stored_size);
  const std::uint32_t crc = crc32(crc32(0, stored.first(record_aad_header_size_bytes)),
                                  stored.subspan(record_header_size_bytes));
  if (crc != header->crc32)
    return tl::unexpected<RecordFault>(
        RecordFault{ErrorCode::corrupt, "CRC-32 of the record does not match"});
  return header;
}

Result<RecordHeader> parse_record_header(ByteView bytes) {
  const auto header = check_record_header(bytes);
  if (!header) return fail(header.error().code, header.error().text);
  return *header;
}

Result<RecordHeader> verify_record_crc(ByteView record) {
  const auto header = check_record_crc(record);
  if (!header) return fail(header.error().code, header.error().text);
  return *header;
}

}  // namespace nacre::engine
