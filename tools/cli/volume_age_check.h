// SPDX-License-Identifier: Apache-2.0
// Compares an opened volume with what this machine has seen of it, and remembers it anew. If the
// memory itself cannot be used, the user still gets at the files. A witness elsewhere, which the
// user named, is asked as well (outside_witness.h).
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "metadata/tables/database.h"
#include "tools/cli/outside_witness.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/witness.h"

namespace nacre::tools {

// Reads the witness that the options name; none if they name none, or if it cannot be read and may
// fail. Then nothing is written to it either, because it may have seen more than this volume shows.
// say gets what the user should know. Errors as of OutsideWitness::read(), with what to do.
Result<std::optional<OutsideWitness>> open_outside_witness(
    const OutsideWitnessOptions& options, const metadata::VolumeKeys& volume,
    const std::function<void(std::string_view)>& say);

// outside: a witness elsewhere that is compared as well, or null. What either of the two memories
// finds older is older. Error: not_permitted if the volume is older than what was seen of it,
// unless options accept that or a person at a terminal does. Call it before anything in the volume
// changes.
Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const metadata::Database& database, const SecretOptions& options,
                   OutsideWitness* outside = nullptr);
// The same for a volume that is opened only for this. A database that cannot be opened has no age;
// the next step reports what is wrong with it.
Result<> check_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   const SecretOptions& options, OutsideWitness* outside = nullptr);

// Call it before an opening for writing. That opening lets the database recover before check_age()
// sees it, which makes a backup a volume of its own. So backups, and volumes that were seen at
// another path or only by the witness elsewhere, are looked at first.
Result<> check_age_beforehand(const VolumePlace& place, const metadata::VolumeKeys& volume,
                              const SecretOptions& options, OutsideWitness* outside = nullptr);

// Remembers a volume that is open for writing; pass only what is durable.
void note_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
              std::uint64_t keyring_generation, const metadata::VolumeAge& age,
              Witness::Moment moment);
// The same for the witness elsewhere, which may take outside_witness_limit. Errors as of
// OutsideWitness::note().
Result<> note_age_outside(OutsideWitness& outside, const metadata::VolumeKeys& volume,
                          std::uint64_t keyring_generation, const metadata::VolumeAge& age,
                          Witness::Moment moment);
// Called after a repair or a salvage on this machine. From now on this machine accepts the volume's
// new state, even if it is older than what was noted before.
void note_made_age(const VolumePlace& place, const metadata::VolumeKeys& volume,
                   OutsideWitness* outside = nullptr);

}  // namespace nacre::tools
