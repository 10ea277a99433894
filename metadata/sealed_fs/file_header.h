// SPDX-License-Identifier: Apache-2.0
// What every file under db/ begins with, and what its name says about it. docs/FORMAT.md,
// "Files under db/".
//
// The header is in the clear and CRC-checked, so that a scrub without keys finds its way. Nothing
// in it is trusted: class and number come from the name, salt and epoch lead to the file's key, and
// all of them enter the additional data of every page and frame.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/record/record.h"
#include "metadata/keys/keys.h"

namespace nacre::metadata {

// Values are on-disk numbers.
enum class FileClass : std::uint8_t {
  table = 1,     // NNNNNN.sst: pages
  log = 2,       // NNNNNN.log, the write-ahead log: frames
  manifest = 3,  // MANIFEST-NNNNNN: frames
  other = 4,  // CURRENT, IDENTITY, OPTIONS-…, *.dbtmp: frames, the last of them marked complete
  info_log = 5,  // LOG, LOG.old.…: frames
};
std::string_view to_string(FileClass file_class);

// What a path under db/ says. Files of class other are renamed into place, so no number binds them.
struct FileName {
  FileClass file_class = FileClass::other;
  std::uint64_t number = 0;  // 0 for other and info_log
};
FileName parse_file_name(std::string_view path);
// The name that the file is to have for good, without folder: what binds files of format 2. RocksDB
// makes CURRENT and IDENTITY under other names and renames them, a rotation whatever it seals anew.
std::string lasting_file_name(std::string_view path);

inline constexpr std::size_t file_salt_size_bytes = 16;
using FileSalt = std::array<Byte, file_salt_size_bytes>;

//   0      4   5       6        7   8       12          16             32       48      60
//   |"NDBF"| v | class | padded | 0 | epoch | page size | volume id[16]|salt[16]| 0[12] | crc32 |
// The CRC is that of bytes 0…59.
inline constexpr std::size_t file_header_size_bytes = 64;
struct FileHeader {
  FileClass file_class = FileClass::other;
  std::uint32_t epoch = 0;
  std::uint32_t page_size = 0;  // of a table, else 0
  engine::VolumeId volume_id = {};
  FileSalt salt = {};                     // random: the file's id, and what its key is derived from
  EpochFormat format = EpochFormat::one;  // version v; that of the epoch
  // Of format 2: what is sealed has its true size inside, and zeros behind it. docs/FORMAT.md,
  // "Padding".
  bool is_padded = false;
};
std::array<Byte, file_header_size_bytes> encode(const FileHeader& header);
// corrupt (short, magic, CRC, zero fields, class), unsupported (version).
Result<FileHeader> decode_file_header(ByteView bytes);

}  // namespace nacre::metadata
