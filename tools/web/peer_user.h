// SPDX-License-Identifier: Apache-2.0
// The user at the other end of a connection of this machine.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace nacre::tools::web {

// The user of the process at the other end of a connected socket. A Unix socket: SO_PEERCRED. A
// loopback connection: /proc/net/tcp and tcp6, which name the owner of each socket. Nothing if the
// peer is not found, for example because it has closed the connection already.
std::optional<uid_t> peer_user(int socket);

// Finds the owner in the text of /proc/net/tcp or /proc/net/tcp6 (proc(5)). local and remote are
// the two ends as the peer sees them, as in that file: "0100007F:1F90".
std::optional<uid_t> find_socket_owner(std::string_view table, std::string_view local,
                                       std::string_view remote);

}  // namespace nacre::tools::web
