// SPDX-License-Identifier: Apache-2.0
// A view of a volume's folder in which another folder stands for db/. So a new database can be
// written, opened and planned with before it takes db/'s place. Files in db/ are sealed with their
// number and not with their folder.
#pragma once

#include <memory>
#include <string>

#include "metadata/backing/backing.h"

namespace nacre::fs {

// A directory that shows holder's folder as db/, and everything else of volume. Does not copy
// anything.
std::shared_ptr<metadata::BackingDirectory> with_database(
    std::shared_ptr<metadata::BackingDirectory> volume,
    std::shared_ptr<metadata::BackingDirectory> holder, std::string folder);

}  // namespace nacre::fs
