#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real ext4 disk of 256 MiB fills up, from the inside and from the outside: who is told, what goes
# on, and that all is well again once there is room, without a new mount.
. "$(dirname "$0")/../support/mount_harness.sh"
. "$(dirname "$0")/../support/loop_disk.sh"

make_disk 256M -m 0
make_volume
mount_volume -o commit=1
ballast_size=$(stat -c %s "$volume/ballast")
[ "$ballast_size" -gt $((8 << 20)) ] || fail "the ballast has $ballast_size bytes"

# From the inside, by somebody who neither syncs nor closes: he is told, too, and does not go on for
# ever.
code=0
timeout 1200 dd if=/dev/urandom of="$mnt/endless" bs=1M 2>"$work/dd.log" || code=$?
[ $code = 1 ] || fail "dd without an end: status $code, $(cat "$work/dd.log")"
grep -q 'No space left' "$work/dd.log" || fail "dd without an end: $(cat "$work/dd.log")"
stat "$mnt/endless" >/dev/null || fail "stat of a file that was refused room"
cat "$mnt/endless" >/dev/null || fail "reading a file that was refused room"
rm "$mnt/endless"
"$NACRE_BIN/nacre" sync "$mnt" 2>/dev/null || "$NACRE_BIN/nacre" sync "$mnt"

# From the inside: cp says so, at the latest when it closes the file.
head -c 8M /dev/urandom >"$work/piece"
count=0
while cp "$work/piece" "$mnt/f$count" 2>"$work/cp.log"; do
  count=$((count + 1))
  [ $count -lt 60 ] || fail "256 MiB took $count files of 8 MiB"
done
grep -q 'No space left' "$work/cp.log" || fail "cp says: $(cat "$work/cp.log")"
[ $count -gt 15 ] || fail "full after $count files of 8 MiB"
rm "$mnt/f$count"
free=$(stat -f -c '%a*%S' "$mnt")
[ $((free)) -lt $((16 << 20)) ] || fail "full, yet statfs shows $((free)) bytes"
# What was taken is there, and names go on.
for i in $(seq 0 $((count - 1))); do
  cmp "$work/piece" "$mnt/f$i" || fail "f$i is not what was written"
done
mkdir "$mnt/folder"
mv "$mnt/f0" "$mnt/folder/f0"
# syncfs(2) reports what could not be written once more, to the first who asks.
"$NACRE_BIN/nacre" sync "$mnt" 2>"$work/sync.log" || grep -q 'No space left' "$work/sync.log" ||
  fail "nacre sync on a full disk: $(cat "$work/sync.log")"
"$NACRE_BIN/nacre" sync "$mnt" || fail "a second nacre sync on a full disk"

# From the outside: not a byte is left.
dd if=/dev/zero of="$disk/foreign" bs=1M 2>/dev/null || true
dd if=/dev/zero of="$disk/crumbs" bs=4k 2>/dev/null || true
for i in $(seq 0 99); do ln -s "target$i" "$mnt/folder/link$i" || break; done
rm -f "$mnt"/folder/link*
cmp "$work/piece" "$mnt/folder/f0" || fail "reading fails on a full disk"
truncate -s 1000 "$mnt/f1" || fail "truncate fails on a full disk"
for i in $(seq 2 $((count - 1))); do rm "$mnt/f$i" || fail "rm fails on a full disk"; done
"$NACRE_BIN/nacre" sync "$mnt" || fail "deletes cannot be synced on a full disk"

# Space has returned by that alone; the volume takes it without being mounted anew.
takes() { cp "$work/piece" "$mnt/again" 2>/dev/null && sync "$mnt/again" 2>/dev/null; }
eventually() {
  local tries
  for tries in $(seq 3000); do
    "$@" && return 0
    sleep 0.1
  done
  return 1
}
eventually takes || fail "what was deleted gives no room"
cmp "$work/piece" "$mnt/again" || fail "wrong content after the disk was full"
rm "$disk/foreign" "$disk/crumbs"
eventually test -e "$volume/ballast" || fail "the ballast does not come back"

# A crash on a full disk, and a mount there.
dd if=/dev/zero of="$disk/foreign" bs=1M 2>/dev/null || true
dd if=/dev/zero of="$disk/crumbs" bs=4k 2>/dev/null || true
kill -9 $(daemons_of "$volume")
wait_for_daemon "$volume"
detach "$mnt"
mount_volume -o commit=1
rm "$mnt/again" || fail "rm fails after a crash on a full disk"
"$NACRE_BIN/nacre" sync "$mnt" || fail "nacre sync after a crash on a full disk"

# The disk grows under the mount.
if ! grow_disk 384M; then
  skip_part "a disk that grows" "$(tail -n 1 "$work/resize.log")"
  rm "$disk/foreign" "$disk/crumbs"
fi
eventually takes || fail "a disk that has grown gives no room"
cmp "$work/piece" "$mnt/again"
cmp "$work/piece" "$mnt/folder/f0"
[ "$(stat -c %s "$mnt/f1")" = 1000 ] || fail "f1 has another size"
finish
