// SPDX-License-Identifier: Apache-2.0
#include "fs/volume/volume_core.h"

#include <fmt/format.h>

namespace nacre::fs {

namespace {

// The search for a path in a message ends after this many directories or rows.
constexpr std::size_t path_depth_max = 4096;
constexpr std::size_t name_search_row_count_max = 1u << 16;

bool is_verdict(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::tampered ||
         code == ErrorCode::wrong_key || code == ErrorCode::missing ||
         code == ErrorCode::rolled_back;
}

}  // namespace

std::shared_ptr<FileData> VolumePart::data_of(Inode& inode) {
  const auto locked = inode.lock();
  if (!locked->data) {
    locked->data = std::make_shared<FileData>(cache_, inode.number(), locked->row.size,
                                              locked->row.data_bytes);
    locked->data->set_codec(locked->row.flags);
  }
  return locked->data;
}

Error VolumePart::with_path(Error error, InodeNumber inode) {
  if (!is_verdict(error.code)) return error;
  return add_context(std::move(error), shown_name(inode)).value();
}

std::string VolumePart::shown_name(InodeNumber number) {
  return rules_.may_name_files ? path_of(number) : fmt::format("(inode {})", number.value);
}

std::string VolumePart::path_of(InodeNumber number) {
  std::string path;
  for (std::size_t depth = 0; depth < path_depth_max; ++depth) {
    if (number == metadata::root_inode) return path.empty() ? "/" : path;
    const auto inode = inodes_.acquire(number);
    if (!inode) break;
    InodeNumber parent;
    std::string name;
    {
      const auto locked = (*inode)->lock();
      parent = (*inode)->is_directory() ? locked->row.parent : locked->name_parent;
      if (parent == locked->name_parent) name = locked->name;
      if (path.empty() && locked->row.link_count == 0) path = " (deleted)";
    }
    if (name.empty() && parent.value != 0) {
      name = names_.name_of(parent, number, name_search_row_count_max).value_or("");
    }
    if (name.empty()) break;
    path = fmt::format("/{}{}", name, path);
    number = parent;
  }
  return fmt::format("(inode {}){}", number.value, path);
}

}  // namespace nacre::fs
