// SPDX-License-Identifier: Apache-2.0
// Files under db/ that RocksDB keeps open or never replaces, sealed anew under the current epoch;
// and which files are still of an older one.
//
// Such a file is written again frame by frame, with the same flags, under a salt of its own: so it
// has as many frames as before, which is what witnesses count, and no nonce is used twice. A
// manifest that comes to format 2 gets its link before them, so one frame more. The file gets its
// name when it is durable: a crash leaves the one or the other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

// Where a file lies that is to take the place of another; RocksDB takes no name that begins so for
// one of its own.
std::string resealed_path(std::string_view path);

// What a resealed file has otherwise than the one that it comes from.
struct ResealChanges {
  std::optional<ManifestLink> link;   // of a manifest
  std::optional<LogWitness> witness;  // of a log, in the place of each that it has
  // What the file must be, and hold, as whoever writes it knows. Under its name may lie another one
  // by now, whose keys are right as well: an older state, or one of another branch of history.
  std::optional<FramesEnd> expected;
  std::optional<Bytes> expected_content;
};
// Makes the file, durable but for its name, under resealed_path(). path: of the one that there is,
// which keys open. Errors: those of read_frames().
Result<FrameWriter::Replacement> make_resealed_frames(BackingDirectory& directory,
                                                      const std::string& path, const KeyTree& keys,
                                                      FileSeal to, const ResealChanges& changes);

// Under its name already, but not durably so. None when the file is of the current epoch. Nobody
// else may write to it or replace it meanwhile; the caller syncs the folder. padding: the volume's.
// link: of a manifest, in the place of the one that it has. Errors: those of read_frames().
Result<std::optional<FrameWriter::Replacement>> reseal_frames_file(
    BackingDirectory& directory, const std::string& path, const KeyTree& keys,
    engine::Padding padding, const ResealChanges& changes = {});

// The epoch that a file's header names; none when it has no header (yet).
Result<std::optional<std::uint32_t>> epoch_of_file(BackingDirectory& directory,
                                                   const std::string& path);
// Paths of all files of the folder that name another epoch than that, or none. Files that go
// meanwhile are passed over.
Result<std::vector<std::string>> list_files_of_other_epochs(BackingDirectory& directory,
                                                            std::string_view folder,
                                                            std::uint32_t epoch);

}  // namespace nacre::metadata
