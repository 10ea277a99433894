#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A slow backup of a mount whose disk fills up with what only the backup keeps: writers go on, the
# backup is told why it ends, and run once more it succeeds.
. "$(dirname "$0")/../support/mount_harness.sh"
is_root || skip "needs root to mount a file system of its own"

disk=$work/disk target=$work/target
mkdir "$disk"
mount -t tmpfs -o size=128M nacre-backup-disk "$disk" 2>"$work/tmpfs.log" ||
  skip "no tmpfs: $(cat "$work/tmpfs.log")"
volume=$disk/volume
make_volume
mount_volume -o commit=1

head -c 40M /dev/urandom >"$work/piece"
head -c 40M /dev/urandom >"$work/other"
cp "$work/piece" "$mnt/file"
"$NACRE_BIN/nacre" sync "$mnt"
"$NACRE_BIN/nacre" backup --rate 128K "$mnt" "$target" >"$work/backup.log" 2>&1 &
backup=$!
tries=0
until "$NACRE_BIN/nacre" stats "$mnt" | grep -q 'backup .*1 under way'; do
  tries=$((tries + 1))
  [ $tries -lt 3000 ] || fail "no backup is under way: $(cat "$work/backup.log")"
  sleep 0.1
done

# The old file, the new one and what the backup keeps are more than the disk.
for round in 1 2; do
  for content in other piece; do
    cp "$work/$content" "$mnt/new" || fail "round $round: a write is refused"
    "$NACRE_BIN/nacre" sync "$mnt" || fail "round $round: what was written cannot be synced"
    mv "$mnt/new" "$mnt/file"
  done
done
code=0
wait $backup || code=$?
[ $code = 8 ] || fail "the backup ended with $code: $(cat "$work/backup.log")"
for words in "$volume: its disk is full" 'make room on that disk' "$target: this folder is no volume yet" \
  'running nacre backup again goes on from here'; do
  grep -q "$words" "$work/backup.log" || fail "the backup does not say '$words': $(cat "$work/backup.log")"
done
"$NACRE_BIN/nacre" stats "$mnt" | grep -q 'backup .*under way' && fail "the backup is still held"
cmp "$work/piece" "$mnt/file"

"$NACRE_BIN/nacre" backup "$mnt" "$target" >"$work/backup.log" 2>&1 ||
  fail "once there is room: $(cat "$work/backup.log")"
finish
volume=$target
check_volume
mount_volume -o ro
cmp "$work/piece" "$mnt/file" || fail "the backup holds something else"
unmount_volume
