// SPDX-License-Identifier: Apache-2.0
// Seals files under db/ anew under the current epoch if RocksDB keeps them open or never replaces
// them. Also tells which files are still of an older epoch.
//
// Such a file is written again frame by frame, with the same flags, under a new salt. So it has as
// many frames as before, which is the number that witnesses count, and no nonce is used twice. A
// manifest that comes to format 2 gets its link before them, which is one frame more. The file gets
// its name when it is durable: a crash leaves the old file or the new one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

// The path of a file that is to take the place of another. RocksDB takes no name with this prefix
// for one of its own.
std::string resealed_path(std::string_view path);

// The differences between a resealed file and the one that it comes from.
struct ResealChanges {
  std::optional<ManifestLink> link;   // of a manifest
  std::optional<LogWitness> witness;  // of a log: takes the place of each witness that it has
  // What the file must be and hold, as its writer knows. Another file may have its name by now,
  // whose keys are right as well: an older state, or a file of another branch of history.
  std::optional<FramesEnd> expected;
  std::optional<Bytes> expected_content;
};
// Makes the file under resealed_path(). Its content is durable, its name is not. path is that of
// the existing file, which keys opens. Errors: as of read_frames().
Result<FrameWriter::Replacement> make_resealed_frames(BackingDirectory& directory,
                                                      const std::string& path, const KeyTree& keys,
                                                      FileSeal to, const ResealChanges& changes);

// Seals the file anew. The new file has the name already, but not durably: the caller syncs the
// folder. Returns none if the file is of the current epoch. No other thread may write to it or
// replace it meanwhile. padding is the volume's. link takes the place of a manifest's link. Errors:
// as of read_frames().
Result<std::optional<FrameWriter::Replacement>> reseal_frames_file(
    BackingDirectory& directory, const std::string& path, const KeyTree& keys,
    engine::Padding padding, const ResealChanges& changes = {});

// The epoch that a file's header names. None if the file has no header (yet).
Result<std::optional<std::uint32_t>> epoch_of_file(BackingDirectory& directory,
                                                   const std::string& path);
// Returns the paths of all files of the folder whose header does not name that epoch. Files that go
// meanwhile are passed over.
Result<std::vector<std::string>> list_files_of_other_epochs(BackingDirectory& directory,
                                                            std::string_view folder,
                                                            std::uint32_t epoch);

}  // namespace nacre::metadata
