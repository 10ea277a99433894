// SPDX-License-Identifier: Apache-2.0
// Encoding of the header that each file under db/ begins with.
#include "metadata/sealed_fs/file_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gpu_engine/checksum/crc32.h"
#include "metadata/sealed_fs/page_layout.h"

namespace nacre::metadata {
namespace {

constexpr std::array<Byte, 4> file_magic = {'N', 'D', 'B', 'F'};
constexpr std::size_t crc_offset = file_header_size_bytes - 4;

// Whether the text is a number as RocksDB writes it into names: six digits, or more without zeros
// in front.
bool is_number(std::string_view text) {
  return text.size() >= 6 && (text.size() == 6 || text[0] != '0') &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns 0 if the text is no such number, or one that is too large.
std::uint64_t parse_number(std::string_view text) {
  if (!is_number(text)) return 0;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

bool is_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](Byte byte) { return byte == 0; });
}

}  // namespace

std::string_view to_string(FileClass file_class) {
  switch (file_class) {
    case FileClass::table:
      return "table";
    case FileClass::log:
      return "write-ahead log";
    case FileClass::manifest:
      return "manifest";
    case FileClass::other:
      return "small file";
    case FileClass::info_log:
      return "information log";
  }
  return "unknown class";
}

FileName parse_file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  constexpr std::string_view manifest_prefix = "MANIFEST-";
  if (name.ends_with(".sst")) {
    if (const auto number = parse_number(name.substr(0, name.size() - 4)); number != 0) {
      return {FileClass::table, number};
    }
  } else if (name.ends_with(".log")) {
    if (const auto number = parse_number(name.substr(0, name.size() - 4)); number != 0) {
      return {FileClass::log, number};
    }
  } else if (name.starts_with(manifest_prefix)) {
    if (const auto number = parse_number(name.substr(manifest_prefix.size())); number != 0) {
      return {FileClass::manifest, number};
    }
  } else if (name == "LOG" || name.starts_with("LOG.old")) {
    return {FileClass::info_log, 0};
  }
  return {FileClass::other, 0};
}

bool is_other_form_of_name(std::string_view name) {
  constexpr std::string_view manifest_prefix = "MANIFEST-";
  if (name.ends_with(".sst") || name.ends_with(".log")) {
    name.remove_suffix(4);
  } else if (name.starts_with(manifest_prefix)) {
    name.remove_prefix(manifest_prefix.size());
  } else {
    return false;
  }
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos &&
         !is_number(name);
}

bool is_database_file_name(std::string_view name) {
  const FileClass file_class = parse_file_name(name).file_class;
  if (file_class != FileClass::other) return true;
  constexpr std::string_view options_prefix = "OPTIONS-";
  if (name.starts_with(options_prefix)) return is_number(name.substr(options_prefix.size()));
  return name == "CURRENT" || name == "IDENTITY" || name.ends_with(".dbtmp") ||
         name.find(".log.new") != std::string_view::npos;
}

std::string lasting_file_name(std::string_view path) {
  constexpr std::string_view resealed_prefix = "rekey-";
  constexpr std::string_view temporary_suffix = ".dbtmp";
  const FileName parsed = parse_file_name(path);
  std::string_view name = path.substr(path.rfind('/') + 1);
  switch (parsed.file_class) {
    case FileClass::table:
      return fmt::format("{:06}.sst", parsed.number);
    case FileClass::log:
      return fmt::format("{:06}.log", parsed.number);
    case FileClass::manifest:
      return fmt::format("MANIFEST-{:06}", parsed.number);
    case FileClass::info_log:
      return "LOG";
    case FileClass::other:
      break;
  }
  if (!name.ends_with(temporary_suffix)) return std::string(name);
  name.remove_suffix(temporary_suffix.size());
  if (name.starts_with(resealed_prefix)) {
    return lasting_file_name(name.substr(resealed_prefix.size()));
  }
  if (!name.empty() && name.find_first_not_of('0') == std::string_view::npos) return "IDENTITY";
  return parse_number(name) != 0 ? "CURRENT" : std::string(name);
}

std::array<Byte, file_header_size_bytes> encode(const FileHeader& header) {
  std::array<Byte, file_header_size_bytes> bytes = {};
  std::copy(file_magic.begin(), file_magic.end(), bytes.begin());
  bytes[4] = static_cast<Byte>(header.format);
  bytes[5] = static_cast<Byte>(header.file_class);
  bytes[6] = header.is_padded ? 1 : 0;
  store_le(&bytes[8], header.epoch);
  store_le(&bytes[12], header.page_size);
  std::copy(header.volume_id.begin(), header.volume_id.end(), bytes.begin() + 16);
  std::copy(header.salt.begin(), header.salt.end(), bytes.begin() + 32);
  store_le(&bytes[crc_offset], engine::crc32(0, ByteView(bytes).first(crc_offset)));
  return bytes;
}

Result<FileHeader> decode_file_header(ByteView bytes) {
  if (bytes.size() < file_header_size_bytes) {
    return fail(ErrorCode::corrupt, "the file ends within its header");
  }
  if (!std::equal(file_magic.begin(), file_magic.end(), bytes.begin())) {
    return fail(ErrorCode::corrupt, "the file does not begin as a sealed file does");
  }
  if (engine::crc32(0, bytes.first(crc_offset)) != load_le<std::uint32_t>(&bytes[crc_offset])) {
    return fail(ErrorCode::corrupt, "the checksum of the file header is wrong");
  }
  constexpr Byte newest = static_cast<Byte>(EpochFormat::two);
  if (bytes[4] < static_cast<Byte>(EpochFormat::one) || bytes[4] > newest) {
    return fail(ErrorCode::unsupported,
                fmt::format("the file has format version {}, and this program knows versions up to "
                            "{}: use a newer Nacre",
                            bytes[4], newest));
  }
  const Byte padded_max = bytes[4] == static_cast<Byte>(EpochFormat::one) ? 0 : 1;
  if (bytes[6] > padded_max || bytes[7] != 0 || !is_zero(bytes.subspan(48, 12)) ||
      bytes[5] < static_cast<Byte>(FileClass::table) ||
      bytes[5] > static_cast<Byte>(FileClass::info_log)) {
    return fail(ErrorCode::corrupt, "the file header holds values that no version writes");
  }
  FileHeader header;
  header.format = static_cast<EpochFormat>(bytes[4]);
  header.is_padded = bytes[6] != 0;
  header.file_class = static_cast<FileClass>(bytes[5]);
  header.epoch = load_le<std::uint32_t>(&bytes[8]);
  header.page_size = load_le<std::uint32_t>(&bytes[12]);
  std::copy_n(bytes.begin() + 16, header.volume_id.size(), header.volume_id.begin());
  std::copy_n(bytes.begin() + 32, header.salt.size(), header.salt.begin());
  const std::uint32_t page_size = header.file_class == FileClass::table ? page_size_bytes : 0;
  if (header.page_size != page_size) {
    return fail(ErrorCode::corrupt, fmt::format("the file header gives pages of {} bytes, not {}",
                                                header.page_size, page_size));
  }
  return header;
}

}  // namespace nacre::metadata
