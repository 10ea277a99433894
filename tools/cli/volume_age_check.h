// SPDX-License-Identifier: Apache-2.0
// Compares an opened volume with what this machine has seen of it, and remembers it anew. If the
// witness itself cannot be used, the user still gets at the files.
#pragma once

#include "metadata/tables/database.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/witness.h"

namespace nacre::tools {

// Error: not_permitted if the volume is older than what was seen of it, unless options accept that
// or a person at a terminal does. Call it before anything in the volume changes.
Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const metadata::Database& database, const SecretOptions& options);
// The same for a volume that is opened only for this. A database that cannot be opened has no age;
// the next step reports what is wrong with it.
Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const SecretOptions& options);

// Call it before an opening for writing. That opening lets the database recover before check_age()
// sees it, which makes a backup a volume of its own. So backups, and volumes that were seen at
// another path, are looked at first.
Result<> check_age_beforehand(const VolumePlace& place, const metadata::VolumeKeys& volume,
                              const SecretOptions& options);

// Remembers a volume that is open for writing; pass only what is durable.
void note_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
              std::uint64_t keyring_generation, const metadata::VolumeAge& age,
              Witness::Moment moment);
// Remembers what this machine itself made of the volume, by a repair or a salvage, however old it
// is.
void note_made_age(const VolumePlace& place, const metadata::VolumeKeys& volume);

}  // namespace nacre::tools
