#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre trim: what it refuses, and what it gives back, of a mount and of a volume that is not mounted.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume m=$work/mnt
mkdir "$m"
make_volume "$v"
stored() { find "$v/segments" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'; }
mount_it() { expect 0 '^$' mount.nacre "${secret[@]}" "$@" "$v" "$m"; }
unmount_it() { expect 0 '^$' nacre umount "$m"; }
mib=1048576

expect 2 'VOLUME' nacre trim
expect 8 'neither a volume nor where one is mounted' nacre trim "$HOME"
expect 16 'wrong key' nacre trim --passphrase-file "$work/wrong" "$v"
expect 2 'no terminal to ask' nacre trim "$v"

# --- Mounted: 32 MiB that no codec makes smaller, a quarter of which stays.
mount_it -o space_ratio=100 # the background lets everything lie
for i in 1 2 3 4; do head -c $((8 * mib)) /dev/urandom >"$m/$i"; done
nacre sync "$m"
sum=$(sha256sum <"$m/2")
rm "$m/1" "$m/3" "$m/4"
nacre sync "$m"
check "dead bytes take no space: $(stored)" [ "$(stored)" -gt $((30 * mib)) ]
expect 0 '8.0 MiB live, 24.[01] MiB dead, 24.[01] MiB reclaimable' nacre stats "$m"
expect 0 '24.[01] MiB freed: [1-9][0-9]* segments rewritten, 8.0 MiB of them moved' nacre trim "$m"
check "the space came back: $(stored)" [ "$(stored)" -lt $((9 * mib)) ]
expect 0 'freed: 0 segments rewritten' nacre trim "$v"
check "the content stayed" [ "$(sha256sum <"$m/2")" = "$sum" ]
cp "$m/2" "$m/5"
head -c $((8 * mib)) /dev/urandom >"$m/6"
nacre sync "$m"
rm "$m/2" "$m/6"
unmount_it

# --- Not mounted.
expect 0 '8.[01] MiB live, 8.[01] MiB dead, 8.[01] MiB reclaimable' nacre stats "${secret[@]}" "$v"
expect 0 '8.[01] MiB freed: 1 segments rewritten, 8.[01] MiB of them moved' nacre trim "${secret[@]}" "$v"
check "the space came back: $(stored)" [ "$(stored)" -lt $((9 * mib)) ]
expect 0 '"freed_bytes": 0' nacre trim --json "${secret[@]}" "$v"
expect 0 'clean' fsck.nacre --deep "${secret[@]}" "$v"
expect 0 'clean' fsck.nacre --scrub "$v"

# --- Read-only.
mount_it -o ro
expect 8 'mounted read-only' nacre trim "$m"
check "the content stayed" [ "$(sha256sum <"$m/5")" = "$sum" ]
unmount_it

verdict
