// SPDX-License-Identifier: Apache-2.0
// Gives files that root makes in another user's folder to the owner of that folder. So a command
// that is once run with sudo, or by a backup job, leaves nothing behind that the user cannot open.
// Thread-safe.
#pragma once

#include <string>

namespace nacre {

// folder: a descriptor. made: a descriptor of a file that this process has just made in that
// folder. Gives made to the owner of folder. Does nothing in processes that are not root's. A
// folder that root owns changes no owner either; but if another group than root's may write to the
// folder, made gets that group, with the folder's permissions for it. Returns 0, or an errno (such
// as EDQUOT) after which the file must not stay as it is. A file system that keeps no owners gives
// no error.
int give_to_folder_owner(int folder, int made);

// Does the same for the folder name, which this process has just made in parent. Only an empty
// folder that root owns is given away, since any user with write access to parent may have put
// something else in its place. Returns 0 or an errno, as give_to_folder_owner() does.
int give_new_folder_to_owner(int parent, const std::string& name);

// Makes the folder and the missing folders above it. New folders are private to their owner, and
// are given to the owners of the folders above them, as by give_new_folder_to_owner(). Returns 0 or
// an errno.
int make_folders_for_owner(const std::string& path);

}  // namespace nacre
