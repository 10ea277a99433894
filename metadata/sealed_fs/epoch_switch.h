// SPDX-License-Identifier: Apache-2.0
// How a rotation to an epoch of format 2 begins under db/. docs/FORMAT.md, "The beginning of a
// rotation".
//
// Whoever had the older keys can seal what he likes under them, so from the moment on at which
// there are newer ones no file of an older epoch may count. Therefore each is sealed anew before:
// under the new epoch, which only this process has, beside the old one (resealed_path()) and
// durable. Then the keyring with the new epoch is made durable. Then the new files take their
// names. A crash before the keyring leaves the old files, and new ones that nobody can open: they
// are removed. One behind it leaves new files that have no names yet: they get them before the
// database is opened. SealedFileSystem::switch_epoch() does it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/sealed_fs/file_header.h"

namespace nacre::metadata {

// Removes what an attempt left that did not come to its keyring.
Result<void> remove_resealed_files(BackingDirectory& directory, const std::string& folder);

// Seals a table anew, page by page: with the current epoch of next, durable under resealed_path().
// padding: the volume's.
// Errors: those of PageReader and PageWriter.
Result<FileSalt> make_resealed_table(BackingDirectory& directory, const std::string& path,
                                     const KeyTree& keys, const KeyTree& next,
                                     engine::Padding padding);

// Before the database is opened: whether files of the current epoch have not got their names yet.
Result<bool> is_epoch_switch_unfinished(BackingDirectory& directory, const std::string& folder,
                                        const KeyTree& keys);
// Gives them their names, durably.
Result<void> finish_epoch_switch(BackingDirectory& directory, const std::string& folder,
                                 const KeyTree& keys);

// Whoever opens db/ begins with this: finishes such a switch, or, where nothing may be written,
// says with read_only that one is to be finished first. Until then files of db/ look as if they
// were put back, which they were not.
Result<void> settle_epoch_switch(BackingDirectory& directory, const std::string& folder,
                                 const KeyTree& keys, bool read_only);

// Without keys: whether files of an epoch that the keyring names are waiting for their names.
// Then a copy of those that have theirs opens for nobody.
Result<bool> has_unnamed_files(BackingDirectory& directory, const std::string& folder,
                               std::uint32_t newest_epoch);

}  // namespace nacre::metadata
