// SPDX-License-Identifier: Apache-2.0
// Comparing an opened volume with what this machine has seen of it, and remembering it anew.
// Trouble with the witness itself keeps nobody from his files.
#pragma once

#include "metadata/tables/database.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/witness.h"

namespace nacre::tools {

// not_permitted when the volume is older than what was seen of it, unless options accept that or
// somebody at a terminal does. Before anything in the volume is changed.
Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const metadata::Database& database, const SecretOptions& options);
// The same of a volume that is opened only for this. A database that cannot be opened has no age:
// whatever comes next says what is wrong with it.
Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const SecretOptions& options);

// Before an opening for writing. That lets the database recover before check_age() sees it, which
// makes a backup a volume of its own: so a backup, and what was seen at another path, is looked at
// first.
Result<> check_age_beforehand(const VolumePlace& place, const metadata::VolumeKeys& volume,
                              const SecretOptions& options);

// Of an opening for writing: only what is durable.
void note_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
              std::uint64_t keyring_generation, const metadata::VolumeAge& age,
              Witness::Moment moment);
// What this machine has made of it itself, however old it is now: a repair, a salvage.
void note_made_age(const VolumePlace& place, const metadata::VolumeKeys& volume);

}  // namespace nacre::tools
