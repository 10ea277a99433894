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
