// SPDX-License-Identifier: Apache-2.0
// The container: one file, sealed, that needs no volume. docs/FORMAT.md, "Container".
//
//   0        4   5            6   8              12      16
//   +--------+---+------------+---+--------------+-------+--------------+---------+---+-----+
//   | "NCRY" | 1 | chunk bits | 0 | keyring size | CRC32 | keyring text | chunk 0 | … | end |
//   +--------+---+------------+---+--------------+-------+--------------+---------+---+-----+
//
// Chunks and end are records (gpu_engine/record/record.h), without gaps. Every chunk but the last
// has 2^(chunk bits) plain bytes; the last has at least one, so an empty file has none.
//
// What keeps a container in one piece: its keys follow from a salt that was drawn for it alone, a
// record's counter and identity say which of its records it is, and the end record says how many
// there are. So nothing can be put in, taken out, moved, cut off or joined unnoticed.
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
// 256 KiB: beside them the 100 bytes that a record has around its stream weigh nothing, and a
// payload still has enough of them for every core.
inline constexpr unsigned container_chunk_bits_default = 18;
// The epoch of a container's keyring; it has no other.
inline constexpr std::uint32_t container_epoch = 1;

struct ContainerHeader {
  unsigned chunk_bits = container_chunk_bits_default;
  std::uint32_t keyring_size = 0;  // bytes; 1 … keyring_size_bytes_max

  std::size_t chunk_size_bytes() const { return std::size_t{1} << chunk_bits; }
};
std::array<Byte, container_header_size_bytes> encode(const ContainerHeader& header);
// corrupt when it is no container or damaged; unsupported for a later version.
Result<ContainerHeader> parse_container_header(ByteView bytes);

// Which of a container's records one is. Numbers of kinds are shared with metadata::RecordKind.
enum class ContainerRecordKind : std::uint8_t { chunk = 5, end = 6 };
struct ContainerRecordName {
  std::uint64_t index = 0;  // of a chunk, from 0; of the end the count of chunks
  ContainerRecordKind kind = ContainerRecordKind::chunk;
  bool operator==(const ContainerRecordName&) const = default;
};
engine::RecordIdentity encode(const ContainerRecordName& name);
// corrupt: sealed by a holder of the key, but not as a container's.
Result<ContainerRecordName> decode_container_record_name(const engine::RecordIdentity& identity);

// Where in the container's sequence of keys the record of this index is: a key seals only so much,
// which counts where blocks have 64 bits.
struct ContainerPlace {
  std::uint64_t session = 0;
  std::uint32_t counter = 0;
};
ContainerPlace container_place(engine::CipherSuite suite, std::uint64_t index);
// The salt of a session: the container's own (random, in its first record) for session 0.
engine::SessionSalt container_salt(const engine::SessionSalt& first, std::uint64_t session);

struct ContainerTime {
  std::int64_t seconds = 0;  // since 1970
  std::uint32_t nanoseconds = 0;
  bool operator==(const ContainerTime&) const = default;
};
// What the file was like; nothing of it is there for a stream.
struct ContainerAttributes {
  std::string name;                   // without folders, at most 255 bytes; may be empty
  std::optional<std::uint16_t> mode;  // permission bits: at most 0777
  std::optional<ContainerTime> modified;
};
inline constexpr std::size_t container_name_size_bytes_max = 255;

// The plain bytes of the end record.
struct ContainerEnd {
  std::uint64_t size_bytes = 0;  // of the whole plain file
  std::uint64_t chunk_count = 0;
  unsigned chunk_bits = container_chunk_bits_default;
  ContainerAttributes attributes;
};
inline constexpr std::size_t container_end_fixed_size_bytes = 40;
inline constexpr std::size_t container_end_size_bytes_max =
    container_end_fixed_size_bytes + container_name_size_bytes_max;
// A name that is too long is left out.
Bytes encode(const ContainerEnd& end);
Result<ContainerEnd> parse_container_end(ByteView bytes);  // corrupt

// A name that can be that of a file in a folder: not empty, no '/', no NUL, neither "." nor "..".
bool is_file_name(std::string_view name);

}  // namespace nacre::fs
