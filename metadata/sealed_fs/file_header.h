// SPDX-License-Identifier: Apache-2.0
// The header with which every file under db/ begins, and what a file's name says about it.
// docs/FORMAT.md, "Files under db/".
//
// The header is in the clear and has a CRC, so that a scrub without keys can read the file. Nothing
// in it is trusted: class and number come from the name, and salt and epoch lead to the file's key.
// The additional data of every page and frame bind volume, salt, number and class.
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

// The values are on-disk numbers.
enum class FileClass : std::uint8_t {
  table = 1,     // NNNNNN.sst: pages
  log = 2,       // NNNNNN.log, the write-ahead log: frames
  manifest = 3,  // MANIFEST-NNNNNN: frames
  other = 4,  // CURRENT, IDENTITY, OPTIONS-…, *.dbtmp: frames, the last of them marked complete
  info_log = 5,  // LOG, LOG.old.…: frames
};
std::string_view to_string(FileClass file_class);

// What a path under db/ says about its file. Files of class other are renamed into place, so no
// number binds them.
struct FileName {
  FileClass file_class = FileClass::other;
  std::uint64_t number = 0;  // 0 for other and info_log
};
FileName parse_file_name(std::string_view path);
// Whether the name has the number of a table, log or manifest in another form, such as "20.log". No
// version makes such a file, and RocksDB would take it for the one whose name has that number.
bool is_other_form_of_name(std::string_view name);
// Whether RocksDB, a rotation or a backup gives files such a name, which has no folder. Any other
// file under db/ is a stranger's.
bool is_database_file_name(std::string_view name);
// The name that the file is to have for good, without its folder. It binds files of format 2.
// RocksDB makes CURRENT and IDENTITY under other names and renames them; a rotation does so with
// every file that it seals anew.
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
  // Random. It is the file's id, and its key is derived from it.
  FileSalt salt = {};
  EpochFormat format = EpochFormat::one;  // version v: that of the epoch
  // In format 2: whether the sealed bytes have their true size inside, and zeros after the content.
  // docs/FORMAT.md, "Padding".
  bool is_padded = false;
};
std::array<Byte, file_header_size_bytes> encode(const FileHeader& header);
// Errors: corrupt (short, magic, CRC, zero fields, class), unsupported (version).
Result<FileHeader> decode_file_header(ByteView bytes);

}  // namespace nacre::metadata
