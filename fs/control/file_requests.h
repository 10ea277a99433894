// SPDX-License-Identifier: Apache-2.0
// The request of the control socket about one file:
//
//   file   {"inode": N, "first_chunk": N}: tells how the file is stored from that chunk on; the
//          reply has "file": {"chunk_size_bytes", "chunks": […], "next_chunk" if there are more}
//
// No name goes over the socket. The inode is the one that stat(2) shows on the mount.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fs/control/control_server.h"

namespace nacre::fs {

// Returns the object "file". Errors: invalid_argument; those of look_at_chunks().
Result<nlohmann::json> handle_file(ControlHandler& handler, const MountDescription& description,
                                   const nlohmann::json& message);

}  // namespace nacre::fs
