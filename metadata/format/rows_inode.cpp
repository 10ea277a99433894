// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes values of the tables inodes and dentries. rows.h has the layouts.
#include "metadata/format/row_codec.h"
#include "metadata/format/rows.h"

namespace nacre::metadata {

namespace {

constexpr std::uint32_t mode_max = 0177777;  // type, set-id, sticky and permission bits
constexpr std::uint32_t nanoseconds_max = 999'999'999;
constexpr std::uint8_t dentry_type_max = 15;  // DT_* are the top four bits of a mode

void write(RowWriter& writer, const Timestamp& time) {
  writer.signed_number(time.seconds);
  writer.number(time.nanoseconds);
}

Timestamp read_timestamp(RowReader& reader) {
  Timestamp time;
  time.seconds = reader.signed_number();
  time.nanoseconds = reader.number_32(0, nanoseconds_max);
  return time;
}

}  // namespace

std::string encode(const InodeRow& row) {
  RowWriter writer;
  writer.number(row.mode);
  writer.number(row.uid);
  writer.number(row.gid);
  writer.number(row.link_count);
  writer.number(row.flags);
  writer.number(row.rdev);
  writer.number(row.size);
  writer.number(row.data_bytes);
  writer.number(row.parent.value);
  write(writer, row.accessed);
  write(writer, row.modified);
  write(writer, row.changed);
  write(writer, row.born);
  writer.number(row.symlink_target.size());
  writer.raw(row.symlink_target);
  return writer.take();
}

Result<InodeRow> decode_inode_row(std::string_view value) {
  RowReader reader(value, "inode");
  InodeRow row;
  row.mode = reader.number_32(0, mode_max);
  row.uid = reader.number_32();
  row.gid = reader.number_32();
  row.link_count = reader.number_32();
  row.flags = reader.number_32();
  row.rdev = reader.number();
  row.size = reader.number();
  row.data_bytes = reader.number();
  row.parent.value = reader.number();
  row.accessed = read_timestamp(reader);
  row.modified = read_timestamp(reader);
  row.changed = read_timestamp(reader);
  row.born = read_timestamp(reader);
  row.symlink_target = reader.raw(reader.number(0, symlink_size_bytes_max));
  NACRE_TRY(reader.finish());
  return row;
}

std::string encode(const DentryRow& row) {
  RowWriter writer;
  writer.byte(row.type);
  writer.number(row.inode.value);
  return writer.take();
}

Result<DentryRow> decode_dentry_row(std::string_view value) {
  RowReader reader(value, "directory entry");
  DentryRow row;
  row.type = reader.byte(dentry_type_max);
  row.inode.value = reader.number(1);
  NACRE_TRY(reader.finish());
  return row;
}

}  // namespace nacre::metadata
