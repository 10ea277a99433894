#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The file system below a mounted volume fills up and is then made larger (tmpfs: that works where
# no loop device may be grown): writers go on without a new mount.
. "$(dirname "$0")/../support/mount_harness.sh"
is_root || skip "needs root to mount a file system of its own"

disk=$work/disk
mkdir "$disk"
mount -t tmpfs -o size=96M nacre-growing-disk "$disk" 2>"$work/tmpfs.log" ||
  skip "no tmpfs: $(cat "$work/tmpfs.log")"
volume=$disk/volume
make_volume
mount_volume -o commit=1

head -c 4M /dev/urandom >"$work/piece"
takes() { cp "$work/piece" "$mnt/$1" 2>"$work/cp.log" && "$NACRE_BIN/nacre" sync "$mnt"; }
count=0
while takes "f$count"; do
  count=$((count + 1))
  [ $count -lt 40 ] || fail "96 MiB took $count files of 4 MiB"
done
grep -q 'No space left' "$work/cp.log" || fail "cp says: $(cat "$work/cp.log")"
[ $count -gt 5 ] || fail "full after $count files of 4 MiB"
rm "$mnt/f$count"
! takes more || fail "there is room although nothing grew"
rm -f "$mnt/more"
free=$(stat -f -c '%a*%S' "$mnt")

mount -o remount,size=256M "$disk"
tries=0
until takes more; do
  tries=$((tries + 1))
  [ $tries -lt 60 ] || fail "a disk that has grown gives no room: $(cat "$work/cp.log")"
  sleep 1
done
[ $(($(stat -f -c '%a*%S' "$mnt"))) -gt $((free + (64 << 20))) ] ||
  fail "statfs does not show that the disk has grown"
for i in $(seq $((count + 1)) $((count + 20))); do
  takes "f$i" || fail "of twenty more files one is refused: $(cat "$work/cp.log")"
done
rm "$mnt/more"
for i in $(seq 0 $((count - 1))) $(seq $((count + 1)) $((count + 20))); do
  cmp "$work/piece" "$mnt/f$i" || fail "f$i is not what was written"
done
finish
