#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What newcomers type, and what they are told: the right one of two folders, the right program, and
# nothing that could cost data.
. "$(dirname "$0")/command_harness.sh"
needs_mounts
v=$work/vault m=$work/private empty=$work/empty
mkdir "$m" "$empty"
not_said() { # WORDS COMMAND…
  local words=$1 said
  shift
  said=$("$@" </dev/null 2>&1)
  ! grep -qE -- "$words" <<<"$said" || failed "'$*' says: $said"
}
# The programs by the names that other file systems' tools have for commands.
expect 0 'Made a volume' nacre mkfs "${secret[@]}" "${cheap[@]}" "$v"
expect 0 '^$' nacre mount "${secret[@]}" "$v" "$m"
expect 32 'fsck.nacre: .*mounted' nacre fsck "${secret[@]}" "$v"
expect 2 'mount.nacre: MOUNTPOINT is required' nacre mount "$v"
expect 0 'Usage: nacre COMMAND' nacre help
expect 0 'Usage: nacre umount' nacre help umount
expect 0 'Usage: nacre key add' nacre help key add
expect 2 'stast is no command.*did you mean stats' nacre stast
expect 2 'did you mean remove' nacre key remvoe
not_said 'did you mean' nacre frobnicate
expect 2 'did you mean umount' nacre unmount "$m"
expect 0 '^$' nacre umount "$m"
expect 0 'clean' nacre fsck "${secret[@]}" "$v"
expect 2 "nacre: a command is missing; there are backup.*, mkfs, mount, fsck. To begin, \
'nacre mkfs VOLUME' makes a volume, and 'nacre mount VOLUME MOUNTPOINT' mounts it" nacre
for program in mkfs mount fsck; do expect 0 "^Usage: $program.nacre" nacre help $program; done
expect 2 'nacre: frob is no command; there are' nacre help frob
expect 2 'nacre: key frob is no command; there are list' nacre help key frob
expect 2 'mont is no command.*did you mean mount\?' nacre mont "$v" "$m"
expect 2 'passwd is no command.*did you mean key passphrase\?' nacre passwd "$v"
expect 8 "vault is a volume: give the mount point.*'nacre mount .*vault MOUNTPOINT' mounts it" nacre unlock "$v"
expect 8 "vault is a volume: give the mount point" nacre lock "$v"
expect 8 'is not a Nacre mount' nacre lock "$work"
not_said 'did you mean' nacre key unlock
# Alone in a folder, nacre looks for the others where programs are, and else names them.
mkdir "$work/alone"
cp "$NACRE_BIN/nacre" "$work/alone/"
expect 2 'mount.nacre, which is not installed here' env PATH=/nowhere "$work/alone/nacre" mount "$v" "$m"

# The two folders.
nacre mount "${secret[@]}" "$v" "$m" || failed "mount"
for command in umount sync scrub; do
  [ $command = scrub ] || expect 8 "$v is the folder of a volume, which is mounted at $m" nacre $command "$v"
done
ln -s "$v" "$work/link"
expect 8 "mounted at $m" nacre umount "$work/link"
expect 8 "where the volume $v is mounted.*give $v" fsck.nacre "$m"
expect 8 "where the volume $v is mounted" mount.nacre "${secret[@]}" "$m" "$empty"
expect 32 "where the volume $v is mounted: nothing was changed" mkfs.nacre "${secret[@]}" "$m"
for command in "fsck.nacre $m" "mount.nacre $m $empty" "mount.nacre $empty $v" "fsck.nacre $empty" \
  "nacre trim $empty" "nacre dump superblock $empty" "mount.nacre $work $m"; do
  not_said 'mkfs\.nacre' $command
done
expect 2 "$v is a volume.*mount.nacre $v $empty" mount.nacre "${secret[@]}" "$empty" "$v"

expect 8 "fsck.nacre: $m is where the volume $v is mounted, not the volume: give $v" fsck.nacre --scrub "$m"
expect 32 "Unmount it first: a mounted volume changes while it is checked \(nacre umount $m\). \
'nacre scrub $m' verifies all checksums" fsck.nacre "$v"
mkdir "$m/inner"
for command in umount sync; do
  expect 8 "$m/inner is not a mount itself, but lies within the one at $m: give $m" nacre $command "$m/inner"
done
rmdir "$m/inner"
expect 2 "$v/new lies within the volume $v: nothing was changed. Give a directory elsewhere" mkfs.nacre "${secret[@]}" "$v/new"
expect 2 "$v/segments/a lies within the volume" mkfs.nacre "${secret[@]}" "$v/segments/a"
[ ! -e "$v/new" ] || failed "mkfs.nacre made $v/new"
for place in "$v" "$v/db" "$work"; do
  expect 2 "the mount point $place and the volume $v lie within one another: choose a mount \
point elsewhere" mount.nacre "${secret[@]}" "$v" "$place"
done
expect 8 "$work/wrong is not a directory: a volume is one, not a file or a device" mount.nacre "$work/wrong" "$empty"
expect 8 "$work/wrong is not a directory: a volume is one, not a file or a device" fsck.nacre "$work/wrong"

# Without a GPU nothing sounds as if something were too old.
not_said 'insufficient' nacre stats "$m"
[ -e /dev/nvidiactl ] || expect 0 'cuda: none \((this machine has no|this build has no)' nacre stats "$m"

# What keeps a mount busy is named.
mkdir "$m/inner"
if is_root && mount -t tmpfs none "$m/inner" 2>/dev/null; then
  expect 32 "$m/inner is mounted within it" nacre umount "$m"
  umount "$m/inner"
fi
exec 8>"$m/open"
expect 32 "process $$ \(first_words.sh\) has a file open in it|process $$ \(bash\) has a file open" nacre umount "$m"
exec 8>&-
(cd "$m/inner" && exec sleep 1000) &
sleeper=$!
for _ in $(seq 3000); do [ "$(readlink /proc/$sleeper/cwd)" = "$m/inner" ] && break; sleep 0.1; done
expect 32 "process $sleeper \([a-z]*\) has its current directory in it" nacre umount "$m"
kill $sleeper
wait $sleeper 2>/dev/null
expect 0 '^$' nacre umount "$m"

# Options, questions, line ends.
expect 2 'unknown mount option bogus.*passphrase-file=.*passphrase-fd=' mount.nacre -o bogus "${secret[@]}" "$v" "$m"
expect 2 'unknown mount option allow-other; did you mean allow_other\?; there are: ro' mount.nacre -o allow-other "${secret[@]}" "$v" "$m"
expect 2 'unknown mount option comit=5; did you mean commit\?' mount.nacre -o comit=5 "${secret[@]}" "$v" "$m"
expect 8 "nacre: $work/none: No such file" nacre crypt encrypt "$work/none"
is_root || grep -q '^ *user_allow_other' /etc/fuse.conf 2>/dev/null ||
  expect 8 'ask root to add the line user_allow_other to /etc/fuse.conf' mount.nacre -o allow_other "${secret[@]}" "$v" "$m"
is_root || [ ! -d /root ] || [ -x /root ] ||
  expect 8 '/root: Permission denied: it belongs to user 0. Give the command as that user' fsck.nacre /root
expect 2 'passphrase-fd=x: expected the number' mount.nacre -o passphrase-fd=x "$v" "$m"
expect 0 '^$' bash -c 'mount.nacre -o passphrase-fd=0 "$1" "$2" <"$3"' - "$v" "$m" "$work/passphrase"
expect 0 '^$' nacre umount "$m"
expect 8 "cannot make the directory $work/none/vol: $work/none: No such file" mkfs.nacre "$work/none/vol"
is_root || { mkdir -m 500 "$work/closed"; expect 8 'Permission denied' mkfs.nacre "$work/closed/vol"; }
printf 'correct horse battery staple\r\n' >"$work/dos"
expect 16 'carriage return' mount.nacre --passphrase-file "$work/dos" "$v" "$m"
expect 16 'carriage return' fsck.nacre --passphrase-file "$work/dos" "$v"
not_said 'carriage' mount.nacre --passphrase-file "$work/wrong" "$v" "$m"
verdict
