// SPDX-License-Identifier: Apache-2.0
// How a rotation to an epoch of format 2 begins under db/. docs/FORMAT.md, "The beginning of a
// rotation".
//
// An attacker who had the older keys can seal anything under them. So no file of an older epoch may
// count from the moment at which there are newer keys. SealedFileSystem::switch_epoch() therefore
// does this:
//
//   1. Each file is sealed anew under the new epoch, whose key only this process has. The new file
//      lies next to the old one (resealed_path()) and is durable.
//   2. The keyring with the new epoch is made durable.
//   3. The new files take their names.
//
// A crash before 2. leaves the old files, and new files that no key opens: these are removed. A
// crash after 2. leaves new files that have no names yet: they get them before the database is
// opened.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/sealed_fs/file_header.h"

namespace nacre::metadata {

// Removes the files of an attempt that did not get as far as its keyring.
// is_kept says whether the new file of a path stays.
Result<void> remove_resealed_files(
    BackingDirectory& directory, const std::string& folder,
    const std::function<bool(const std::string& path)>& is_kept = {});

// Seals a table anew, page by page, under the current epoch of next. The new file is durable under
// resealed_path(). padding is the volume's. Returns the salt of the old file, which the new one
// has, too. Under one epoch, salt and name give the key, and page and generation the nonce. So no
// two tables of one salt may be sealed under one epoch: may_use is asked first, and its error ends
// the call. Errors: as of PageReader and PageWriter.
Result<FileSalt> make_resealed_table(BackingDirectory& directory, const std::string& path,
                                     const KeyTree& keys, const KeyTree& next,
                                     engine::Padding padding,
                                     const std::function<Result<void>(const FileSalt&)>& may_use);

// Whether files of the current epoch still lack their names. Called before the database is opened.
Result<bool> is_epoch_switch_unfinished(BackingDirectory& directory, const std::string& folder,
                                        const KeyTree& keys);
// Gives these files their names, durably.
Result<void> finish_epoch_switch(BackingDirectory& directory, const std::string& folder,
                                 const KeyTree& keys);

// Finishes such a switch, or fails with read_only if there is one and nothing may be written. A
// program that opens db/ calls it first: until the switch is finished, the files under db/ look as
// if an attacker had put back those of the older epoch.
Result<void> settle_epoch_switch(BackingDirectory& directory, const std::string& folder,
                                 const KeyTree& keys, bool read_only);

// Whether files of the newest epoch still wait for their names. A copy without these files cannot
// be opened. Needs no key.
Result<bool> has_unnamed_files(BackingDirectory& directory, const std::string& folder,
                               std::uint32_t newest_epoch);

}  // namespace nacre::metadata
