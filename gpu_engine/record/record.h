// SPDX-License-Identifier: Apache-2.0
// The record: what seal makes and unseal opens. docs/FORMAT.md, "Record".
//
//   0        4   5   6   8             12      16         32        36      40
//   +--------+---+---+---+-------------+-------+----------+---------+-------+-------------+-----+
//   | "NREC" | v | 0 | 0 | stored size | epoch | salt[16] | counter | CRC32 | sealed body | tag |
//   +--------+---+---+---+-------------+-------+----------+---------+-------+-------------+-----+
//   |<------------------------ clear header (40) ------------------------->|
//
// The sealed body, once open:
//   0       1  4            8               12             44
//   +-------+--+------------+---------------+--------------+------------------+---------------+
//   | codec | 0| plain size | stream size   | identity[32] | stream           | zeros (padding)|
//   +-------+--+------------+---------------+--------------+------------------+---------------+
//
// AAD = volume id (16) + clear header bytes 0…35 (all but the CRC). Nonce = 4 zero bytes + counter
// as u64. Key = write-session key of (epoch, salt). The tag has its suite's size. Under a suite
// that encrypts only whole blocks, zeros are added to the padding. The CRC-32 covers bytes 0…35 and
// everything from 40 to the end, tag included: anyone can check it without a key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/codec/codec.h"

namespace nacre::engine {

using VolumeId = std::array<Byte, 16>;
using SessionSalt = std::array<Byte, 16>;
// Names the record for the metadata; the engine only stores and compares it.
using RecordIdentity = std::array<Byte, 32>;

struct RecordHeader {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t reserved_a;    // zero
  std::uint16_t reserved_b;   // zero
  std::uint32_t stored_size;  // bytes of the whole record: header, body, tag
  std::uint32_t epoch;
  SessionSalt salt;
  std::uint32_t counter;
  std::uint32_t crc32;
};
static_assert(sizeof(RecordHeader) == 40 && offsetof(RecordHeader, salt) == 16 &&
              offsetof(RecordHeader, crc32) == 36);

struct RecordBodyHeader {
  std::uint8_t codec;
  std::uint8_t reserved[3];  // zero
  std::uint32_t plain_size;
  std::uint32_t stream_size;
  RecordIdentity identity;
};
static_assert(sizeof(RecordBodyHeader) == 44 && offsetof(RecordBodyHeader, identity) == 12);

inline constexpr std::uint32_t record_magic = 0x4345524e;  // "NREC"
inline constexpr std::uint8_t record_version = 1;
inline constexpr std::size_t record_header_size_bytes = sizeof(RecordHeader);
inline constexpr std::size_t record_aad_header_size_bytes = offsetof(RecordHeader, crc32);
inline constexpr std::size_t record_size_bytes_min =
    record_header_size_bytes + sizeof(RecordBodyHeader) + tag_size_bytes_min;
// The size of the largest record: record_size_bound() for chunk_size_bytes_max plain bytes, under
// the padding and the suite that add most. A header with a larger size is corrupt.
inline constexpr std::size_t record_size_bytes_max =
    record_header_size_bytes + 1081344 + tag_size_bytes_max;

enum class Padding : std::uint8_t { none = 0, padme = 1 };

// The body's size after padding. Padmé (Nikitin et al., PETS 2019) adds at most 12 %, and leaks
// O(log log n) bits of the length.
std::uint64_t padded_size(Padding padding, std::uint64_t body_size);

// The body's size under a suite: padded_size(), rounded up to whole blocks where the suite encrypts
// only whole blocks.
std::uint64_t sealed_body_size(CipherSuite suite, Padding padding, std::uint64_t body_size);

// The most bytes that a record of plain_size bytes can take under any codec. The sealer uses
// Codec::none when a stream would not be smaller than its input.
std::size_t record_size_bound(CipherSuite suite, Padding padding, std::size_t plain_size);

// Parses and checks the clear header at the front of bytes: magic, version, reserved fields, and
// that stored_size is at least record_size_bytes_min and at most bytes.size() and
// record_size_bytes_max. Does not check the CRC. Errors: corrupt; unsupported for a later version.
Result<RecordHeader> parse_record_header(ByteView bytes);

// The check that needs no key: parse_record_header(), then the CRC. The error's text says which of
// them failed.
Result<RecordHeader> verify_record_crc(ByteView record);

// The same two checks with static text, for the hot path.
struct RecordFault {
  ErrorCode code;
  const char* text;
};
tl::expected<RecordHeader, RecordFault> check_record_header(ByteView bytes);
tl::expected<RecordHeader, RecordFault> check_record_crc(ByteView record);

}  // namespace nacre::engine
