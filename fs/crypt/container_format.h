// SPDX-License-Identifier: Apache-2.0
// The container: one file, sealed, that needs no volume. docs/FORMAT.md, "Container".
//
//   0        4   5            6   8              12      16
//   +--------+---+------------+---+--------------+-------+--------------+---------+---+-----+
//   | "NCRY" | 1 | chunk bits | 0 | keyring size | CRC32 | keyring text | chunk 0 | … | end |
//   +--------+---+------------+---+--------------+-------+--------------+---------+---+-----+
//
// Chunks and end are records (gpu_engine/record/record.h), without gaps. Every chunk but the last
// has 2^(chunk bits) plain bytes; the last chunk is not empty, so an empty file has no chunks.
//
// A container's keys are derived from a salt that was drawn for it alone. The counter and identity
// of a record tell its place in the container, and the end record tells how many records there are.
// So records cannot be inserted, removed, moved, cut off or joined without notice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/limits.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/record/record.h"

namespace nacre::fs {

inline constexpr std::size_t container_header_size_bytes = 16;
inline constexpr unsigned container_chunk_bits_min = 12;
inline constexpr unsigned container_chunk_bits_max = 20;
static_assert(1u << container_chunk_bits_min == chunk_size_bytes_min &&
              1u << container_chunk_bits_max == chunk_size_bytes_max);
// 256 KiB. The 100 bytes that a record adds to its stream are negligible at this size, and a
// payload still has enough chunks for all cores.
inline constexpr unsigned container_chunk_bits_default = 18;
// The only epoch of a container's keyring.
inline constexpr std::uint32_t container_epoch = 1;

struct ContainerHeader {
  unsigned chunk_bits = container_chunk_bits_default;
  std::uint32_t keyring_size = 0;  // bytes; 1 … keyring_size_bytes_max

  std::size_t chunk_size_bytes() const { return std::size_t{1} << chunk_bits; }
};
std::array<Byte, container_header_size_bytes> encode(const ContainerHeader& header);
// Errors: corrupt if the file is no container or is damaged; unsupported for a later version.
Result<ContainerHeader> parse_container_header(ByteView bytes);

// The kind of a container's record. The numbers do not overlap with those of metadata::RecordKind.
enum class ContainerRecordKind : std::uint8_t { chunk = 5, end = 6 };
struct ContainerRecordName {
  std::uint64_t index = 0;  // a chunk's index from 0; in the end record, the number of chunks
  ContainerRecordKind kind = ContainerRecordKind::chunk;
  bool operator==(const ContainerRecordName&) const = default;
};
engine::RecordIdentity encode(const ContainerRecordName& name);
// Error: corrupt if a holder of the key sealed the record, but not as a record of a container.
Result<ContainerRecordName> decode_container_record_name(const engine::RecordIdentity& identity);

// The session and the counter of the record with this index. A long container is cut into sessions,
// each with a salt of its own, because one key may seal only a limited amount (docs/FORMAT.md).
struct ContainerPlace {
  std::uint64_t session = 0;
  std::uint32_t counter = 0;
};
ContainerPlace container_place(engine::CipherSuite suite, std::uint64_t index);
// The salt of a session. That of session 0 is the container's own, which is random and stands in
// the first record.
engine::SessionSalt container_salt(const engine::SessionSalt& first, std::uint64_t session);

struct ContainerTime {
  std::int64_t seconds = 0;  // since 1970
  std::uint32_t nanoseconds = 0;
  bool operator==(const ContainerTime&) const = default;
};
// Attributes of the encrypted file. Data from a pipe has none.
struct ContainerAttributes {
  std::string name;                   // without folders, at most 255 bytes; may be empty
  std::optional<std::uint16_t> mode;  // permission bits: at most 0777
  std::optional<ContainerTime> modified;
};
inline constexpr std::size_t container_name_size_bytes_max = 255;

// The plain bytes of the end record.
struct ContainerEnd {
  std::uint64_t size_bytes = 0;  // size of the whole plain file
  std::uint64_t chunk_count = 0;
  unsigned chunk_bits = container_chunk_bits_default;
  ContainerAttributes attributes;
};
inline constexpr std::size_t container_end_fixed_size_bytes = 40;
inline constexpr std::size_t container_end_size_bytes_max =
    container_end_fixed_size_bytes + container_name_size_bytes_max;
// If the name is too long, it is left out.
Bytes encode(const ContainerEnd& end);
Result<ContainerEnd> parse_container_end(ByteView bytes);  // corrupt

// Whether this can be the name of a file in a folder: it is not empty, has no '/' and no NUL, and
// is neither "." nor "..".
bool is_file_name(std::string_view name);

}  // namespace nacre::fs
