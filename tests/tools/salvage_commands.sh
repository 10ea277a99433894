#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fsck.nacre --salvage: a real tree comes back from the segments alone; what it refuses; what it says.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume t=$work/salvaged m=$work/mnt
mkdir "$m"
make_volume "$v"
mount_it() { expect 0 '^$' mount.nacre "${secret[@]}" "$@" "$m"; }
unmount_it() { expect 0 '^$' nacre umount "$m"; }
# Names, types, modes, owners, times, sizes, targets; then contents.
picture() {
  (cd "$1" && find . -not -path './lost+found*' -printf '%P %y %m %U %G %T@ %s %n %l\n' | sort &&
    find . -type f -not -path './lost+found*' -print0 | sort -z | xargs -0 sha256sum)
}

mount_it "$v"
(
  cd "$m" || exit
  mkdir -p a/b/c
  for i in $(seq 300); do echo "file $i" >"a/b/$i"; done
  head -c 3000000 /dev/urandom >a/large
  truncate -s 5M a/sparse
  printf x | dd of=a/sparse bs=1 seek=3000000 conv=notrunc status=none
  ln a/large 'second name'
  ln -s a/large link
  mkfifo a/pipe
  chmod 640 a/large
  touch -d '2020-02-02 02:02:02.020202' a/b/7
  rm a/b/9
)
picture "$m" >"$work/before"
unmount_it
expect 0 'clean' fsck.nacre --deep "${secret[@]}" "$v"
expect 0 'checkpoint 0x' nacre dump tables "${secret[@]}" "$v"

# --- db/ is lost.
mv "$v/db" "$work/lost"
expect 4 'To see what a repair would do: fsck.nacre --repair --dry-run' mount.nacre "${secret[@]}" "$v" "$m"
expect 4 'db/ is missing.*--salvage' fsck.nacre --repair --dry-run "${secret[@]}" "$v"
expect 2 'together' fsck.nacre --salvage "$t" --deep "${secret[@]}" "$v"
expect 2 '[-][-]salvage.*names nothing' fsck.nacre --salvage '' "${secret[@]}" "$v"
expect 16 'wrong' fsck.nacre --salvage "$t" --passphrase-file "$work/wrong" "$v"
expect 2 'within the volume' fsck.nacre --salvage "$v/inside" "${secret[@]}" "$v"
rm -rf "$v/inside"
mkdir "$work/used"
touch "$work/used/file"
expect 8 'holds other files' fsck.nacre --salvage "$work/used" "${secret[@]}" "$v"
expect 1 'files and directories as of 20.*salvaged from .*with nothing lost.*was not changed: keep it' \
  fsck.nacre --salvage "$t" "${secret[@]}" "$v"
check "nothing of a mount's log is said" bash -c "! fsck.nacre --salvage $work/quiet ${secret[*]} $v 2>&1 | grep -F '[info]'"
rm -rf "$work/quiet"
expect 8 'already holds a volume' fsck.nacre --salvage "$t" "${secret[@]}" "$v"
expect 0 'clean' fsck.nacre --deep "${secret[@]}" "$t"
mount_it "$t"
picture "$m" >"$work/after"
check "all is there as it was" cmp "$work/before" "$work/after"
check "nothing is newer" [ ! -e "$m/lost+found" ]
unmount_it

# --- A mount that was killed: what came after the checkpoint lies in lost+found.
rm -rf "$t"
mv "$work/lost" "$v/db"
mount_it "$v" -o commit=1
head -c 200000 /dev/urandom >"$m/newer"
sum=$(sha256sum <"$m/newer")
printf y | dd of="$m/holed" bs=1 seek=1M status=none
inode=$(stat -c %i "$m/newer")
nacre sync "$m"
kill -9 $(daemons)
check "the killed daemon stays" wait_for_daemons
umount -l "$m" 2>/dev/null || fusermount3 -uz "$m"
rm -rf "$v/db"
expect 1 "lost\+found/#$inode, 195.3 KiB in 4 chunks.*zeros, not known: 1048576 bytes at 0" \
  fsck.nacre --salvage "$t" "${secret[@]}" "$v"
mount_it "$t"
check "what is newer is there" [ "$(sha256sum <"$m/lost+found/#$inode")" = "$sum" ]
picture "$m" >"$work/after"
# The root has one entry more.
check "the checkpoint's files too" cmp <(sed 1d "$work/before") <(sed 1d "$work/after")
unmount_it
rm -rf "$t"

# --- A damaged record costs one chunk, and is told; --json says the same to machines.
segment=$(ls -S "$v"/segments/*.seg | head -n 1)
printf 'rot' | dd of="$segment" bs=1 seek=100000 conv=notrunc status=none
expect 4 '"lost_record_count": 1,' fsck.nacre --salvage "$t" --json "${secret[@]}" "$v"
mount_it "$t"
check "the damaged file cannot be read" bash -c '! cat "$1/a/large" >/dev/null 2>&1' _ "$m"
check "others can" grep -qx 'file 7' "$m/a/b/7"
unmount_it

verdict
