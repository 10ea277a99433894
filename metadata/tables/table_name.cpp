// SPDX-License-Identifier: Apache-2.0
// The tables by name, as RocksDB, messages and repair plans know them.
#include "metadata/tables/database.h"

namespace nacre::metadata {

std::string_view to_string(Table table) {
  switch (table) {
    case Table::inodes:
      return "inodes";
    case Table::dentries:
      return "dentries";
    case Table::chunks:
      return "chunks";
    case Table::inlined:
      return "inlined";
    case Table::xattrs:
      return "xattrs";
    case Table::segments:
      return "segments";
    case Table::orphans:
      return "orphans";
    case Table::system:
      return "system";
  }
  return "unknown table";
}

}  // namespace nacre::metadata
