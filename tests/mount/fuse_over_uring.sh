#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The FUSE tests with every mount served over io_uring, in memory and on a real volume. Switches the
# kernel's part on for as long as it runs, where root may.
#
#   fuse_over_uring.sh FUSE_TESTS
set -euo pipefail
program=$1
switch=/sys/module/fuse/parameters/enable_uring
skip() {
  echo "skipped: fuse_over_uring: $*"
  exit 77
}
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
[ -r "$switch" ] || skip "this kernel has no FUSE over io_uring"
# Not while a test relies on it as it is (fuse_uring_test.cpp).
turn() { { flock 9 && echo "$1" >"$switch"; } 9<"$switch"; }
before=$(cat "$switch")
if [ "$before" != Y ]; then
  turn Y 2>/dev/null || skip "FUSE over io_uring is off and only root can switch it on"
  trap 'turn "$before"' EXIT
fi
export NACRE_FUSE_TRANSPORT=io_uring
for volume in memory nacre; do
  echo "$volume"
  NACRE_FUSE_VOLUME=$volume "$program" --gtest_filter='Fuse*:-FuseEnvironment.*' --gtest_brief=1
done
