// SPDX-License-Identifier: Apache-2.0
// The request of the control socket about one file:
//
//   file   {"inode": N, "first_chunk": N}: how it is stored from that chunk on; the reply has
//          "file": {"chunk_size_bytes", "chunks": […], "next_chunk" where there is more}
//
// No name goes over the socket: the inode is what stat(2) shows on the mount.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fs/control/control_server.h"

namespace nacre::fs {

// The object "file". invalid_argument, and the errors of look_at_chunks().
Result<nlohmann::json> handle_file(ControlHandler& handler, const MountDescription& description,
                                   const nlohmann::json& message);

}  // namespace nacre::fs
