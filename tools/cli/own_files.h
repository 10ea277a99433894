// SPDX-License-Identifier: Apache-2.0
// Where programs keep the files that they make by themselves. They make none in an empty home,
// because a volume may be mounted there, and none below a mount point, because the mount would hide
// them, or they would keep it from being empty.
#pragma once

#include <string>

namespace nacre::tools {

// For mount.nacre: from now on no file is made at or below that folder (absolute, links resolved).
void leave_alone(const std::string& mountpoint);

// Whether files may be kept below base ($XDG_CONFIG_HOME, ~/.config, …). home is the
// user's home if base lies below it, else the empty string. base need not exist. Below a folder
// that is left alone it is not looked into.
bool may_keep_files(const std::string& home, const std::string& base);

bool lies_below(const std::string& path, const std::string& folder);  // or is the same

}  // namespace nacre::tools
