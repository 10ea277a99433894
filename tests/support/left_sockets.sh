# SPDX-License-Identifier: Apache-2.0
# For scripts that look at control sockets after an unmount; sourced.
#
# The kernel gives the number of a mount that ended to the next one, which may be another test's of the
# same user, in a mount namespace of its own. That one's daemon listens at the socket of that name, or
# is about to remove it.

# Whether a socket is there at which no daemon listens, and none removes it within a minute.
is_left_behind() { # PATH
  for _ in $(seq 600); do
    [ -e "$1" ] || return 1
    ! python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$1" \
      2>/dev/null || return 1
    sleep 0.1
  done
}
