// SPDX-License-Identifier: Apache-2.0
// What root makes in a folder of somebody else's belongs to the owner of that folder: a command
// that is once run with sudo, or by a backup job, leaves nothing behind that the user cannot open.
#pragma once

#include <string>

namespace nacre {

// made: a descriptor of what this process has just made in the folder that the other is of. For
// root alone; a no-op for everybody else, and in folders of root's own. In one of root's that a
// group may write to, the group gets what it has of the folder. 0, or the errno for which it must
// not stay as it is (EDQUOT); where the file system keeps no owners, that is none.
int give_to_folder_owner(int folder, int made);

// The same for a folder that this process has just made. Nothing but an empty folder of root's is
// given away: whoever may write to the folder above may have put something else there.
int give_new_folder_to_owner(int parent, const std::string& name);

// Makes the folder and those above it that are missing, for nobody else's eyes, each of them its
// parent's owner's. 0, or errno.
int make_folders_for_owner(const std::string& path);

}  // namespace nacre
