#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The file system below a mounted volume fills up and is then made larger: writers go on without a
# new mount. On tmpfs, which grows wherever it may be mounted, and on a loop device of 256 MiB
# (btrfs: unlike ext4 it may be grown in a container, too).
. "$(dirname "$0")/../support/mount_harness.sh"
is_root || skip "needs root to mount a file system of its own"

head -c 4M /dev/urandom >"$work/piece"
takes() { cp "$work/piece" "$mnt/$1" 2>"$work/cp.log" && "$NACRE_BIN/nacre" sync "$mnt"; }

# fill_and_grow DISK FILES_MIN FILES_MAX COMMAND…: of 4 MiB each; COMMAND makes it larger by 150 MiB
# or more.
fill_and_grow() {
  local disk=$1 count_min=$2 count_max=$3 count=0 free tries=0 i
  shift 3
  volume=$disk/volume
  make_volume
  mount_volume -o commit=1
  while takes "f$count"; do
    count=$((count + 1))
    [ $count -lt "$count_max" ] || fail "$disk took $count files of 4 MiB"
  done
  grep -q 'No space left' "$work/cp.log" || fail "cp says: $(cat "$work/cp.log")"
  [ $count -gt "$count_min" ] || fail "$disk is full after $count files of 4 MiB"
  rm "$mnt/f$count"
  ! takes more || fail "there is room although nothing grew"
  rm -f "$mnt/more"
  free=$(stat -f -c '%a*%S' "$mnt")

  "$@" >"$work/grow.log" 2>&1 || fail "$*: $(cat "$work/grow.log")"
  until takes more; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "a disk that has grown gives no room: $(cat "$work/cp.log")"
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
  echo "$disk: full after $count files, and twenty more once it had grown"
}

on_tmpfs() {
  mkdir "$work/tmpfs"
  mount -t tmpfs -o size=96M nacre-growing-disk "$work/tmpfs" 2>"$work/tmpfs.log" || {
    skip_part "tmpfs" "$(cat "$work/tmpfs.log")"
    return 0
  }
  fill_and_grow "$work/tmpfs" 5 40 mount -o remount,size=256M "$work/tmpfs"
}

grow_loop() {
  truncate -s 512M "$work/disk.image"
  losetup -c "$(findmnt -nro SOURCE "$work/loop")"
  btrfs filesystem resize max "$work/loop"
}
on_loop() {
  command -v mkfs.btrfs >/dev/null || {
    skip_part "a loop device" "there is no mkfs.btrfs"
    return 0
  }
  mkdir "$work/loop"
  truncate -s 256M "$work/disk.image"
  mkfs.btrfs -q -M "$work/disk.image" >"$work/mkfs.log"
  mount -o loop "$work/disk.image" "$work/loop" 2>"$work/loop.log" || {
    skip_part "a loop device" "$(cat "$work/loop.log")"
    return 0
  }
  fill_and_grow "$work/loop" 20 64 grow_loop
}

on_tmpfs
on_loop
