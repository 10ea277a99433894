#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A volume in a directory with a quota (btrfs: it has quotas of its own wherever it is): the disk
# shows much room, and the next byte is refused. Told like a full disk; deletes go on; more quota is
# taken without a new mount.
. "$(dirname "$0")/../support/mount_harness.sh"
is_root || skip "needs root to mount a disk of its own"
command -v mkfs.btrfs >/dev/null || skip "there is no mkfs.btrfs"

disk=$work/disk limited=$work/disk/limited
mkdir "$disk"
truncate -s 1G "$work/disk.image"
mkfs.btrfs -q "$work/disk.image" >/dev/null
mount -o loop "$work/disk.image" "$disk" 2>"$work/loop.log" ||
  skip "no loop device, or no btrfs: $(cat "$work/loop.log")"
{
  btrfs subvolume create "$limited" && btrfs quota enable "$disk" &&
    btrfs qgroup limit 192M "$limited"
} >"$work/quota.log" 2>&1 || skip "no quota: $(cat "$work/quota.log")"
volume=$limited/volume
make_volume
mount_volume -o commit=1

head -c 8M /dev/urandom >"$work/piece"
takes() {
  cp "$work/piece" "$mnt/$1" 2>"$work/takes.log" &&
    "$NACRE_BIN/nacre" sync "$mnt" 2>>"$work/takes.log"
}
eventually() {
  local tries
  for tries in $(seq 600); do
    "$@" && return 0
    sleep 0.5
  done
  return 1
}
count=0
while takes "f$count"; do
  count=$((count + 1))
  [ $count -lt 30 ] || fail "192 MiB took $count files of 8 MiB"
done
grep -Eq 'No space left|quota' "$work/takes.log" || fail "a used up quota: $(cat "$work/takes.log")"
[ $count -gt 8 ] || fail "used up after $count files of 8 MiB"
[ $(($(stat -f -c '%a*%S' "$disk"))) -gt $((256 << 20)) ] || fail "the disk itself is full"

# What was taken is there; names and deletes go on.
for i in $(seq 0 $((count - 1))); do
  cmp "$work/piece" "$mnt/f$i" || fail "f$i is not what was written"
done
rm -f "$mnt/f$count"
mkdir "$mnt/folder" || fail "no folder within a used up quota"
mv "$mnt/f0" "$mnt/folder/f0" || fail "no rename within a used up quota"
for i in 1 2 3 4; do rm "$mnt/f$i" || fail "rm fails within a used up quota"; done
# syncfs(2) reports what could not be written once more, to the first who asks.
"$NACRE_BIN/nacre" sync "$mnt" 2>"$work/sync.log" || grep -Eq 'No space left|quota' "$work/sync.log" ||
  fail "nacre sync: $(cat "$work/sync.log")"
"$NACRE_BIN/nacre" sync "$mnt" || fail "deletes cannot be synced within a used up quota"
eventually takes again || fail "what was deleted gives no room: $(cat "$work/takes.log")"

# The quota grows under the mount.
while takes "g$count"; do
  count=$((count + 1))
  [ $count -lt 60 ] || fail "192 MiB took $count files of 8 MiB"
done
rm -f "$mnt/g$count"
btrfs qgroup limit 512M "$limited"
eventually takes more || fail "more quota gives no room: $(cat "$work/takes.log")"
for name in folder/f0 f5 again more; do
  cmp "$work/piece" "$mnt/$name" || fail "$name is not what was written"
done
finish
