// SPDX-License-Identifier: Apache-2.0
// Files under db/ that RocksDB keeps open or never replaces, sealed anew under the current epoch;
// and which files are still of an older one.
//
// Such a file is written again frame by frame, with the same numbers and flags, under a salt of its
// own: so it has as many frames as before, which is what witnesses count, and no nonce is used
// twice. It gets its name when it is durable: a crash leaves the one or the other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/file_seal.h"

namespace nacre::metadata {

struct ResealedFile {
  FileSeal seal;
  std::unique_ptr<BackingFile> file;  // under its name already, but not durably so
  std::uint64_t stored_bytes = 0;
};
// None when the file is of the current epoch. Nobody else may write to it or replace it meanwhile;
// the caller syncs the folder. Errors: those of read_frames().
Result<std::optional<ResealedFile>> reseal_frames_file(BackingDirectory& directory,
                                                       const std::string& path,
                                                       const KeyTree& keys);

// The epoch that a file's header names; none when it has no header (yet).
Result<std::optional<std::uint32_t>> epoch_of_file(BackingDirectory& directory,
                                                   const std::string& path);
// Paths of all files of the folder that name another epoch than that, or none. Files that go
// meanwhile are passed over.
Result<std::vector<std::string>> list_files_of_other_epochs(BackingDirectory& directory,
                                                            std::string_view folder,
                                                            std::uint32_t epoch);

}  // namespace nacre::metadata
