// SPDX-License-Identifier: Apache-2.0
// The files that form the database at one commit, for copying them while the database is in use.
// All but CURRENT only grow or stay as they are, so the first bytes of each form the snapshot.
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
  std::uint64_t size = 0;  // stored bytes, from the file's beginning
};

struct DatabaseSnapshot {
  // The tables, the manifest, one log without rows, IDENTITY and the newest OPTIONS.
  std::vector<DatabaseFile> files;
  Bytes current;  // the content of the file CURRENT, which is replaced together with the manifest
  // While it exists, none of the files is removed. It may outlive neither the database nor its
  // lock.
  std::shared_ptr<const void> hold;
};

// Whether a log holds anything but witnesses, as far as its frames show; no key is needed. Error:
// corrupt if it has no valid header.
Result<bool> log_has_rows(BackingDirectory& directory, std::string_view path);
// The size of the header of each file in db/. A shorter table is unfinished.
inline constexpr std::size_t database_file_size_bytes_min = 64;

}  // namespace nacre::metadata
