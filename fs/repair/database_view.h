// SPDX-License-Identifier: Apache-2.0
// A volume directory of which db/ is another folder: so a database that is made anew can be
// written, opened and planned with before it takes its place. (Files under db/ are sealed for their
// number, not for their folder.)
#pragma once

#include <memory>
#include <string>

#include "metadata/backing/backing.h"

namespace nacre::fs {

// folder of holder stands in for db/; everything else is volume's own.
std::shared_ptr<metadata::BackingDirectory> with_database(
    std::shared_ptr<metadata::BackingDirectory> volume,
    std::shared_ptr<metadata::BackingDirectory> holder, std::string folder);

}  // namespace nacre::fs
