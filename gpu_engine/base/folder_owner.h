// SPDX-License-Identifier: Apache-2.0
// Files that root makes in somebody else's folder belong to the owner of that folder. So a command
// that is once run with sudo, or by a backup job, leaves nothing behind that the user cannot open.
#pragma once

#include <string>

namespace nacre {

// folder: a descriptor. made: a descriptor of a file that this process has just made in that
// folder. Gives made to the owner of folder. Only root's processes do this, and not in folders that
// root owns. If such a folder has another group than root's, which may write to it, made gets that
// group and lets it do what the folder lets it do. Returns 0, or an errno (such as EDQUOT) for
// which the file must not stay as it is. A file system that keeps no owners gives no error.
int give_to_folder_owner(int folder, int made);

// The same for a folder that this process has just made. Only an empty folder that root owns is
// given away: whoever may write to the folder above may have put something else in its place.
int give_new_folder_to_owner(int parent, const std::string& name);

// Makes the folder and the missing folders above it. Nobody but its owner may enter such a folder,
// and it belongs to its parent's owner. 0, or errno.
int make_folders_for_owner(const std::string& path);

}  // namespace nacre
