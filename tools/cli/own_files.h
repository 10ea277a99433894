// SPDX-License-Identifier: Apache-2.0
// Where programs keep what they remember by themselves, and where not: an empty home may be the
// place at which a volume is to be mounted, and stays empty; what lies below a mount point would be
// hidden by the mount, or keep it from being empty.
#pragma once

#include <string>

namespace nacre::tools {

// For mount.nacre: from now on nothing is begun at or below that folder (absolute, links resolved).
void leave_alone(const std::string& mountpoint);

// Whether files may be kept below base ($XDG_CONFIG_HOME, ~/.config, …), which is below home where
// home is not empty. base need not exist; it is not looked into where it lies below what is left
// alone.
bool may_keep_files(const std::string& home, const std::string& base);

bool lies_below(const std::string& path, const std::string& folder);  // or is the same

}  // namespace nacre::tools
