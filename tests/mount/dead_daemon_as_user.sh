#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dead_daemon.py as an ordinary user, who can neither abort a connection nor unmount by force.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "skipped: dead_daemon_as_user: $*"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can make a user for it"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
command -v fusermount3 >/dev/null || skip "there is no fusermount3"
. "$here/../support/user_view.sh"
enter_user_view "$@"
mkdir -m 700 "$view/tmp"
chown "$user_id:$user_id" "$view/tmp"
as_user env TMPDIR="$view/tmp" python3 "$user_source/tests/mount/dead_daemon.py"
