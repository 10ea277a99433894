#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a script of the repository as an ordinary user: directly when it is one who asks, else in a
# view of the machine that has such a user.
#
#   as_user.sh SCRIPT [ARGUMENT…]      SCRIPT relative to the top of the repository
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" != 0 ]; then
  script=$here/../../$1
  shift
  exec bash "$script" "$@"
fi
. "$here/user_view.sh"
if [ ! -e /dev/fuse ]; then
  echo "skipped: $1 as an ordinary user: there is no /dev/fuse"
  exit 77
fi
enter_user_view "$@"
script=$user_source/$1
shift
as_user test -r "$script" -a -x "$user_bin/mount.nacre" || {
  echo "skipped: $script as an ordinary user: the checkout is closed to other users"
  exit 77
}
status=0
as_user bash "$script" "$@" || status=$?
exit $status
