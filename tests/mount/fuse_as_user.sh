#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The FUSE tests once more as an ordinary user, who mounts through fusermount3. Whoever runs the
# tests as an ordinary user has done so already.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "skipped: fuse_as_user: $*"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "fuse_tests itself already ran as an ordinary user"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
command -v fusermount3 >/dev/null || skip "there is no fusermount3"
. "$here/../support/user_view.sh"
enter_user_view "$@"
mkdir -m 700 "$view/tmp"
chown "$user_id:$user_id" "$view/tmp"
# What needs root is no gap: it ran as root.
as_user env TMPDIR="$view/tmp" "$user_bin/fuse_tests" --gtest_color=no |
  sed 's/^skipped: /as root only: /'
