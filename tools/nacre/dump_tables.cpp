// SPDX-License-Identifier: Apache-2.0
// nacre dump tables: every row of the database, decoded, one a line.
#include <cctype>
#include <functional>

#include <fmt/format.h>

#include "metadata/backing/volume_lock.h"
#include "metadata/format/checkpoint.h"
#include "metadata/format/rows.h"
#include "metadata/format/scrub_row.h"
#include "metadata/tables/database.h"
#include "metadata/text/rfc3339.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/dump.h"

namespace nacre::tools {

namespace {

using metadata::Table;

// Escapes any bytes, so that each row stays on one line.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '\'' || c == '\\') {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string describe_field(const metadata::Timestamp& time) {
  return fmt::format("{}.{:09}", time.seconds, time.nanoseconds);
}

std::string describe_field(const metadata::RecordLocation& location) {
  return fmt::format("{}:{}+{}", location.segment.value, location.offset, location.stored_size);
}

Result<std::string> inode_row(std::string_view key, std::string_view value) {
  NACRE_ASSIGN(const auto number, metadata::decode_inode_key(key));
  NACRE_ASSIGN(const auto row, metadata::decode_inode_row(value));
  std::string line = fmt::format(
      "{} mode {:o} uid {} gid {} links {} flags {:#x} size {} data {} accessed {} modified {} "
      "changed {} born {}",
      number.value, row.mode, row.uid, row.gid, row.link_count, row.flags, row.size, row.data_bytes,
      describe_field(row.accessed), describe_field(row.modified), describe_field(row.changed),
      describe_field(row.born));
  if (row.rdev != 0) line += fmt::format(" rdev {:#x}", row.rdev);
  if (row.parent.value != 0) line += fmt::format(" parent {}", row.parent.value);
  if (!row.symlink_target.empty()) line += " target " + in_quotes(row.symlink_target);
  return line;
}

Result<std::string> dentry_row(std::string_view key, std::string_view value) {
  NACRE_ASSIGN(const auto parts, metadata::decode_dentry_key(key));
  NACRE_ASSIGN(const auto row, metadata::decode_dentry_row(value));
  return fmt::format("{} hash {:016x} {} -> {} type {}", parts.parent.value, parts.name_hash,
                     in_quotes(parts.name), row.inode.value, row.type);
}

Result<std::string> chunk_row(std::string_view key, std::string_view value) {
  NACRE_ASSIGN(const auto parts, metadata::decode_chunk_key(key));
  NACRE_ASSIGN(const auto row, metadata::decode_chunk_map_row(value));
  std::string line = fmt::format("{} chunk {}", parts.inode.value, parts.index.value);
  if (row.hole) return line + fmt::format(" hole of {} chunks", row.hole->chunk_count);
  if (row.lost) return line + fmt::format(" lost: {} chunks", row.lost->chunk_count);
  for (const auto& range : row.chunk->lost)
    line += fmt::format(" lost at {}: {} bytes", range.offset, range.size);
  if (const auto& base = row.chunk->base) {
    line += fmt::format(" base {} version {:#x} valid {} of {}", describe_field(base->location),
                        base->version.value, base->valid_size, base->plain_size);
  }
  for (const auto& patch : row.chunk->patches) {
    line += fmt::format(" patch at {} {} version {:#x} valid {} of {}", patch.offset,
                        patch.location ? describe_field(*patch.location) : "inlined",
                        patch.version.value, patch.valid_size, patch.plain_size);
  }
  return line;
}

Result<std::string> inlined_row(std::string_view key, std::string_view value) {
  NACRE_ASSIGN(const auto parts, metadata::decode_inlined_key(key));
  return fmt::format("{} chunk {} version {:#x} offset {}: {} bytes", parts.inode.value,
                     parts.index.value, parts.version.value, parts.offset, value.size());
}

Result<std::string> xattr_row(std::string_view key, std::string_view value) {
  constexpr std::size_t number_size = sizeof(std::uint64_t);
  NACRE_ASSIGN(const auto number, metadata::decode_inode_key(key.substr(0, number_size)));
  return fmt::format("{} {} = {}", number.value, in_quotes(key.substr(number_size)),
                     in_quotes(value));
}

Result<std::string> segment_row(std::string_view key, std::string_view value) {
  NACRE_ASSIGN(const auto number, metadata::decode_segment_key(key));
  NACRE_ASSIGN(const auto row, metadata::decode_segment_row(value));
  return fmt::format("{} committed {} live {} epoch {} salt {}", number.value, row.committed_size,
                     row.live_bytes, row.epoch, hex(row.salt));
}

Result<std::string> orphan_row(std::string_view key, std::string_view) {
  NACRE_ASSIGN(const auto number, metadata::decode_inode_key(key));
  return fmt::format("{}", number.value);
}

Result<std::string> system_row(std::string_view key, std::string_view value) {
  if (key.starts_with(metadata::system_key_session_prefix)) {
    NACRE_ASSIGN(const auto row, metadata::decode_session_row(value));
    const auto salt = key.substr(metadata::system_key_session_prefix.size());
    return fmt::format("session {} ordinal {} epoch {} opened {}", hex(as_bytes(salt)), row.ordinal,
                       row.epoch, metadata::rfc3339(row.opened_seconds));
  }
  if (key.starts_with(metadata::system_key_checkpoint_prefix)) {
    NACRE_ASSIGN(const auto number, metadata::decode_checkpoint_key(key));
    NACRE_ASSIGN(const auto row, metadata::decode_checkpoint_row(value));
    std::string line =
        fmt::format("checkpoint {:#x} closed {} root {} version {:#x} parts", number.value,
                    row.closed_session, describe_field(row.root.location), row.root.version.value);
    for (const auto& part : row.parts)
      line += fmt::format(" {} of {}", describe_field(part.location), part.plain_size);
    return line;
  }
  if (key == metadata::system_key_scrub) {
    NACRE_ASSIGN(const auto row, metadata::decode_scrub_row(value));
    return fmt::format("scrub {} segment {} offset {} of {} damages {}",
                       metadata::to_string(row.state), row.segment.value, row.offset,
                       row.last_segment.value, row.damage_count);
  }
  // The value is a key, so only its presence is printed.
  if (key == metadata::system_key_name_hash) {
    return fmt::format("{} ({} bytes)", key, value.size());
  }
  NACRE_ASSIGN(const auto number, metadata::decode_u64(value));
  return fmt::format("{} {}", key, number);
}

struct TableDump {
  Table table;
  Result<std::string> (*describe)(std::string_view key, std::string_view value);
};
constexpr TableDump dumps[] = {{Table::system, system_row},    {Table::inodes, inode_row},
                               {Table::dentries, dentry_row},  {Table::xattrs, xattr_row},
                               {Table::chunks, chunk_row},     {Table::inlined, inlined_row},
                               {Table::segments, segment_row}, {Table::orphans, orphan_row}};

}  // namespace

Result<> dump_tables(const DumpArguments& arguments) {
  bool any = arguments.table.empty();
  for (const auto& dump : dumps)
    any = any || to_string(dump.table) == arguments.table;
  if (!any) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the database has no table '{}'", arguments.table));
  }
  NACRE_ASSIGN(const auto place, find_volume(arguments.volume));
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::shared}));
  NACRE_ASSIGN(const auto secret, read_secret(arguments.secret, place.path));
  NACRE_ASSIGN(const auto volume, unlock(place, secret, arguments.secret));
  NACRE_ASSIGN(const auto database,
               metadata::Database::open(place.directory, volume.keys, {.read_only = true}));
  for (const auto& dump : dumps) {
    const auto name = to_string(dump.table);
    if (!arguments.table.empty() && name != arguments.table) continue;
    NACRE_TRY(database->scan(dump.table, "", "", [&](std::string_view key, std::string_view value) {
      const auto line = dump.describe(key, value);
      print_safely(
          "{} {}\n", name,
          line ? *line
               : fmt::format("UNDECODABLE key {}: {}", hex(as_bytes(key)), line.error().message));
      return true;
    }));
  }
  return {};
}

}  // namespace nacre::tools
