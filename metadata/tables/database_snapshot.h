// SPDX-License-Identifier: Apache-2.0
// The files that together are the database as of one commit, for who copies them while the database
// goes on. All but CURRENT only grow or stay as they are: the first bytes of each are the snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "metadata/backing/backing.h"

namespace nacre::metadata {

struct DatabaseFile {
  std::string name;        // within db/
  std::uint64_t size = 0;  // stored bytes from the beginning
};

struct DatabaseSnapshot {
  // The tables, the manifest, one log (which holds no rows), IDENTITY and the newest OPTIONS.
  std::vector<DatabaseFile> files;
  Bytes current;  // what the file CURRENT holds: it is replaced when the manifest is
  // While it lives, none of the files is removed. It may outlive neither the database nor its lock.
  std::shared_ptr<const void> hold;
};

// Whether a log holds anything but witnesses, as far as its frames can be told; without keys.
// corrupt when it has no proper header.
Result<bool> log_has_rows(BackingDirectory& directory, std::string_view path);
// The header of every file under db/. A table that is shorter is unfinished.
inline constexpr std::size_t database_file_size_bytes_min = 64;

}  // namespace nacre::metadata
