#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands around a mount: what mount.nacre refuses and how, who holds a volume, sync and umount and
# what they promise, signals, read-only media, and mount(8).
if [ "$(id -u)" = 0 ]; then
  # In a mount namespace of its own: /dev/fuse may vanish, and a medium be read-only.
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume m=$work/mnt
mkdir "$m"
make_volume "$v"
mount_it() {
  timeout 600 mount.nacre "${secret[@]}" "$@" "$v" "$m" >"$work/mount.log" 2>&1 &&
    note_socket
}
socket_folder=/run/nacre
is_root || socket_folder=$XDG_RUNTIME_DIR/nacre
# And when it was made: names and numbers come again, with the next mount that has that device.
note_socket() {
  stat -c '%.9Y %n' "$socket_folder/$(mountpoint -d "$m" | tr : -).sock" >>"$work/sockets"
}
# Those of this test that are still there.
sockets_left() {
  local made socket
  while read -r made socket; do
    [ "$(stat -c %.9Y "$socket" 2>/dev/null)" != "$made" ] || echo "$socket"
  done <"$work/sockets"
}
unmount_it() { timeout 600 nacre umount "$m" >"$work/umount.log" 2>&1; }
is_mounted() { grep -aq " $m " /proc/self/mountinfo; }
plain_umount() { if is_root; then umount "$1"; else fusermount3 -u "$1"; fi; }
killed_umount() { if is_root; then umount -l "$1"; else fusermount3 -uz "$1"; fi; }

# --- Refused before anything is mounted.
refuse() {
  expect "$@"
  ! is_mounted || failed "refused, yet mounted: ${*:3}"
}
refuse 16 'wrong key' mount.nacre --passphrase-file "$work/wrong" "$v" "$m"
refuse 2 'no terminal to ask' mount.nacre "$v" "$m"
refuse 8 'nowhere' mount.nacre "${secret[@]}" "$work/nowhere" "$m"
refuse 8 'is not a Nacre volume: it has no superblock' mount.nacre "${secret[@]}" "$HOME" "$m"
refuse 8 'nowhere does not exist: make it' mount.nacre "${secret[@]}" "$v" "$work/nowhere"
refuse 8 'not a directory' mount.nacre "${secret[@]}" "$v" "$work/passphrase"
refuse 2 'unknown mount option nonsense' mount.nacre "${secret[@]}" -o ro,nonsense "$v" "$m"
refuse 2 'commit=0' mount.nacre "${secret[@]}" -o commit=0 "$v" "$m"
refuse 2 "'fast' is no engine" mount.nacre "${secret[@]}" --engine fast "$v" "$m"
if ! nvidia-smi >/dev/null 2>&1; then
  refuse 8 'the engine cuda cannot run here' mount.nacre "${secret[@]}" --engine cuda "$v" "$m"
fi
refuse 2 'two options say where' mount.nacre "${secret[@]}" -o passphrase-command=true "$v" "$m"
refuse 2 '-t ext4' mount.nacre "${secret[@]}" -t ext4 "$v" "$m"
refuse 2 'within one another' mount.nacre "${secret[@]}" -o nonempty "$v" "$v"
refuse 2 'within one another' mount.nacre "${secret[@]}" -o nonempty "$v" "$v/segments"
refuse 2 'within one another' mount.nacre "${secret[@]}" -o nonempty "$v" "$work"
refuse 8 'log file' mount.nacre "${secret[@]}" --log-file "$work/no/such/log" "$v" "$m"
mkdir "$work/full"
echo covered >"$work/full/file"
refuse 8 'not empty .it holds file.*nonempty' mount.nacre "${secret[@]}" "$v" "$work/full"
expect 0 '' mount.nacre -f "$v" "$m"
! is_mounted || failed "-f mounted"
[ -z "$(daemons)" ] || failed "a refused mount left a daemon"

# --- Mounted: usable at once, the folder as an argument of its own, nothing of the caller kept open.
exec 7>"$work/held"
flock 7
mount_it || failed "mount: $(cat "$work/mount.log")"
exec 7>&-
check "not mounted" is_mounted
echo first >"$m/file" || failed "not usable at once"
check "the daemon keeps the caller's files open" flock -n "$work/held" true
for pid in $(daemons); do
  tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qx "$v" || failed "the folder is no argument of its own"
  if is_root && [ "$(readlink "/proc/$pid/fd/2")" != /dev/null ]; then
    failed "the daemon keeps its standard error"
  fi
  [ "$(cat "/proc/$pid/coredump_filter")" = 00000000 ] || failed "a core would hold plaintext"
done
expect 32 "$v: already mounted at $m by process [0-9]+" mount.nacre "${secret[@]}" "$v" "$work/full" \
  -o nonempty
# A second volume on the same mount point, whether the first one's root is empty or not.
make_volume "$work/second"
busy="mount point $m is in use: the volume $v is mounted there.*nacre umount $m"
expect 32 "$busy" mount.nacre "${secret[@]}" "$work/second" "$m"
mv "$m/file" "$work/file"
expect 32 "$busy" mount.nacre "${secret[@]}" "$work/second" "$m"
mv "$work/file" "$m/file"
[ "$(grep -ac " $m " /proc/self/mountinfo)" = 1 ] || failed "one mount was stacked on another"
expect 32 "already mounted at $m.*Unmount it first" fsck.nacre "${secret[@]}" "$v"
expect 32 'already mounted' fsck.nacre --scrub "$v"
expect 32 'already mounted' nacre dump tables "${secret[@]}" "$v"
expect 0 "$v mounted at $m by process [0-9]+" nacre stats "$m"
expect 0 "$v mounted at $m" nacre stats "$v"
check "stats --json is no JSON" bash -c "nacre stats --json $m | python3 -m json.tool >/dev/null"
expect 0 '"health": "ok"' nacre stats --json "$m/"
expect 0 'transport +(/dev/fuse|io_uring)' nacre stats "$m"
# Not in a subshell: its failures would be counted there only.
cd "$m" || failed "cannot enter the mount"
expect 0 'mounted at' nacre stats .
cd "$work" || exit 1
head -c 300000 /dev/urandom >"$m/large"
expect 0 '^$' nacre sync "$m"
rm "$m/large"
# What the engine is and did, and what of that by devices: none of them is named with its reason.
expect 0 'engine +.*cpu, [0-9]+ threads.*,[[:space:]]+[0-9]+ messages in [0-9]+ payloads,[[:space:]]+0 failed' nacre stats "$m"
check 'stats --json lacks what the engine did' python3 - "$m" <<'END'
import json, subprocess, sys
engine = json.loads(subprocess.check_output(["nacre", "stats", "--json", sys.argv[1]]))["stats"]["engine"]
assert engine["payload_count"] > 0 and engine["message_count"] > 0, engine
assert engine["input_bytes"] > 0 and engine["output_bytes"] > 0, engine
assert engine["failed_message_count"] == engine["cuda_failed_batch_count"] == 0, engine
assert engine["cuda_message_count"] <= engine["message_count"], engine
if engine["backend"].startswith("cuda, "):
    assert (engine["cuda_message_count"] > 0) == (engine["cuda_input_bytes"] > 0), engine
else:
    assert "; cuda: none (" in engine["backend"] and engine["cuda_message_count"] == 0, engine
END

# --- sync: a killed daemon costs nothing of what was written before, also to a file that is still
# open and was never fsynced: the kernel holds its pages until it is told to write them back.
head -c 3000000 /dev/urandom >"$work/random"
cp "$work/random" "$m/random"
exec 9>"$m/open"
cat "$work/random" >&9
expect 0 '^$' nacre sync "$m"
kill -9 $(daemons)
exec 9>&-
check "the killed daemon stays" wait_for_daemons
# Its last threads may hold the socket for a moment longer.
expect 8 'no daemon answers.*umount|ended without an answer' nacre sync "$m"
expect 8 'no daemon answers' nacre stats "$m"
expect 8 'unmounted, but its daemon had ended' nacre umount "$m"
[ -z "$(sockets_left)" ] || failed "the dead daemon's socket is left: $(sockets_left)"
! is_mounted || failed "a dead mount is still there"
mount_it || failed "mount after a kill: $(cat "$work/mount.log")"
check "what was synced is gone" cmp "$work/random" "$m/random"
check "what was synced of an open file is gone" cmp "$work/random" "$m/open"
[ "$(cat "$m/file")" = first ] || failed "a file is gone"
# A mount takes away what the dead one left.
kill -9 $(daemons)
check "the killed daemon stays" wait_for_daemons
expect 0 'daemon had ended' mount.nacre "${secret[@]}" "$v" "$m"
[ "$(cat "$m/file")" = first ] || failed "a file is gone after another kill"

# --- umount: busy, then durable when it returns, and the daemon gone.
exec 8<"$m/file"
expect 32 "$m is in use.*fuser" nacre umount "$m"
check "a busy umount unmounted" is_mounted
exec 8<&-
cp "$work/random" "$m/again"
expect 0 '^$' nacre umount "$m"
[ -z "$(daemons)" ] || failed "nacre umount returned before its daemon ended"
! is_mounted || failed "nacre umount left it mounted"
expect 0 clean fsck.nacre --deep "${secret[@]}" "$v"
mount_it || failed "mount: $(cat "$work/mount.log")"
check "what was written before umount is gone" cmp "$work/random" "$m/again"

# --- umount(8) alone: the daemon commits by itself, the next mount waits for it.
for round in 1 2 3; do
  cp "$work/random" "$m/round$round"
  plain_umount "$m" || failed "umount"
  mount_it || failed "mounting right after umount: $(cat "$work/mount.log")"
  check "what was written before umount is gone" cmp "$work/random" "$m/round$round"
done
# A stopped predecessor is waited for, and goes on when it can.
pid=$(daemons)
kill -STOP "$pid"
killed_umount "$m"
: >"$work/mount.log"
{
  for _ in $(seq 3000); do grep -q 'waiting up to 30 s' "$work/mount.log" && break; sleep 0.1; done
  kill -CONT "$pid"
} &
mount_it || failed "a predecessor that was slow: $(cat "$work/mount.log")"
grep -q 'waiting up to 30 s' "$work/mount.log" || failed "not said that it waits"
check "the slow predecessor lost a file" cmp "$work/random" "$m/round3"
wait

# --- Signals: a clean unmount.
for signal in TERM INT HUP; do
  cp "$work/random" "$m/signal$signal"
  kill -$signal "$(daemons)"
  check "SIG$signal does not end the daemon" wait_for_daemons
  ! is_mounted || failed "SIG$signal left it mounted"
  mount_it || failed "mount: $(cat "$work/mount.log")"
  check "SIG$signal lost a file" cmp "$work/random" "$m/signal$signal"
done
unmount_it || failed "umount: $(cat "$work/umount.log")"
[ -s "$work/sockets" ] || failed "no socket was noted"
for _ in $(seq 3000); do [ -n "$(sockets_left)" ] || break; sleep 0.1; done
[ -z "$(sockets_left)" ] || failed "sockets are left: $(sockets_left)"

# --- In the foreground.
timeout 600 mount.nacre --foreground "${secret[@]}" "$v" "$m" >"$work/foreground.log" 2>&1 &
foreground=$!
# The mount point is there some moments before the daemon says so; one that is unmounted in between
# has nothing to say.
for _ in $(seq 3000); do
  grep -q "is mounted at $m" "$work/foreground.log" && break
  kill -0 $foreground 2>/dev/null || break
  sleep 0.1
done
check "no message in the foreground" grep -q "is mounted at $m" "$work/foreground.log"
expect 0 '^$' nacre umount "$m"
wait $foreground || failed "the foreground mount ended with $?: $(cat "$work/foreground.log")"
mount_it --log-file "$work/log" || failed "--log-file: $(cat "$work/mount.log")"
unmount_it || failed "umount: $(cat "$work/umount.log")"
check "no message in the log file" grep -q 'everything is durable' "$work/log"

# --- Read-only.
before=$(cd "$v" && find . -type f ! -name lock -exec sha256sum {} + | sort)
mount_it -o ro || failed "-o ro: $(cat "$work/mount.log")"
check "wrong content read-only" cmp "$work/random" "$m/random"
if touch "$m/new" 2>/dev/null; then failed "a read-only mount took a write"; fi
mkdir "$work/mnt2"
expect 0 '' mount.nacre "${secret[@]}" -o ro "$v" "$work/mnt2"
expect 32 'in use for reading' timeout 600 mount.nacre "${secret[@]}" -o nonempty "$v" "$work/full"
expect 0 clean fsck.nacre "${secret[@]}" "$v"
expect 0 '^$' nacre umount "$work/mnt2"
unmount_it || failed "umount: $(cat "$work/umount.log")"
[ "$before" = "$(cd "$v" && find . -type f ! -name lock -exec sha256sum {} + | sort)" ] ||
  failed "a read-only mount changed the volume"

# --- What /etc/fstab gives a helper.
expect 0 '' mount.nacre "$v" "$m" -n -o "rw,noauto,user,_netdev,x-gvfs-show,passphrase_file=$work/passphrase"
unmount_it || failed "umount: $(cat "$work/umount.log")"
expect 0 '' mount.nacre "$v" "$m" -s -v -t nacre -o "unheard-of,passphrase-file=$work/passphrase"
unmount_it || failed "umount: $(cat "$work/umount.log")"

expect 0 "$work/none is not there: nothing was mounted" mount.nacre "$work/none" "$m" -o nofail
expect 8 'No such file' mount.nacre "$work/none" "$m" -o "passphrase-file=$work/passphrase"
expect 16 '' mount.nacre "$v" "$m" -o "nofail,passphrase-file=$work/wrong"

# --- A desktop's keyring as the passphrase's place, a name for the mount table, one owner for all, and the end of
# a mount that nobody uses.
mkdir "$work/desktop"
cat >"$work/desktop/secret-tool" <<END
#!/bin/sh
[ "\$*" = "lookup nacre vault" ] && exec cat '$work/passphrase'
exit 1
END
chmod +x "$work/desktop/secret-tool"
owner=4711  # a user's mount is his alone, whomever its files are said to belong to
[ "$(id -u)" = 0 ] || owner=$(id -u)
PATH=$work/desktop:$PATH expect 0 '' mount.nacre "$v" "$m" --passphrase-command 'secret-tool lookup nacre vault' \
  -o "fsname=anna's vault,uid=$owner,gid=4712,umask=027"
check 'the name in the mount table' [ "$(findmnt -n -o SOURCE "$m")" = "anna's vault" ]
check 'owner and permissions' [ "$(stat -c '%u %g %a' "$m/random")" = "$owner 4712 640" ]
unmount_it || failed "umount: $(cat "$work/umount.log")"
expect 0 '' mount.nacre "${secret[@]}" -o idle=2 "$v" "$m"
for _ in $(seq 3000); do
  findmnt "$m" >/dev/null || break
  sleep 0.1
done
check 'a mount that nobody uses goes' bash -c "! findmnt '$m' >/dev/null"
PATH=$work/desktop:$PATH expect 0 '' mount.nacre "$v" "$m" -o "passphrase-command=secret-tool lookup nacre vault"
unmount_it || failed "umount: $(cat "$work/umount.log")"
PATH=$work/desktop:$PATH refuse 8 'passphrase command.*status 1' mount.nacre "$v" "$m" \
  --passphrase-command 'secret-tool lookup nacre another'

# --- A missing segment: refused with its name, and fsck says which files are hit. Read-only, all
# others can be read; what was in it is EIO, with the file's path in the log.
make_volume "$work/whole"
for name in hit healthy; do
  expect 0 '' mount.nacre "${secret[@]}" "$work/whole" "$m"
  cp "$work/random" "$m/$name" # each mount fills a segment of its own
  expect 0 '^$' nacre umount "$m"
done
damaged() {
  rm -rf "$work/holed"
  cp -a "$work/whole" "$work/holed"
  segment=$(ls "$work/holed/segments" | head -n 1)
}
read_the_rest() {
  refuse 4 "$segment.*$1.*fsck.nacre --deep.*-o ro" mount.nacre "${secret[@]}" "$work/holed" "$m"
  rm -f "$work/holed.log"
  expect 0 "warning: .*$segment.*$1.*cannot be read" \
    mount.nacre "${secret[@]}" -o ro --log-file "$work/holed.log" "$work/holed" "$m"
  check "a file beside the damage cannot be read" cmp "$work/random" "$m/healthy"
  expect 1 'hit: Input/output error' cat "$m/hit"
  [ "$(stat -c %s "$m/hit")" = 3000000 ] || failed "the size of a file that is hit"
  check "no path in the log" grep -q "read /hit .*missing: .*$segment" "$work/holed.log"
  expect 0 '^$' nacre umount "$m"
}
damaged
rm "$work/holed/segments/$segment"
read_the_rest 'is missing'
expect 4 "missing: segments/$segment: the segment is gone" fsck.nacre "${secret[@]}" "$work/holed"
expect 4 "missing: segments/$segment offset [0-9]+: patch.*    /hit" \
  fsck.nacre --deep "${secret[@]}" "$work/holed"
damaged
truncate -s 1000 "$work/holed/segments/$segment"
read_the_rest 'bytes short'

if is_root; then
  # --- A medium that cannot be written to.
  mount --bind "$v" "$v"
  mount -o remount,bind,ro "$v"
  refuse 8 'ead-only.*mounted with -o ro' mount.nacre "${secret[@]}" "$v" "$m"
  mount_it -o ro || failed "-o ro on a read-only medium: $(cat "$work/mount.log")"
  check "wrong content on a read-only medium" cmp "$work/random" "$m/random"
  unmount_it || failed "umount: $(cat "$work/umount.log")"
  expect 0 clean fsck.nacre --deep "${secret[@]}" "$v"
  umount "$v"

  # --- No FUSE, no fusermount3.
  mknod "$view/absent" c 240 99
  mount --bind "$view/absent" /dev/fuse
  refuse 8 '/dev/fuse' mount.nacre "${secret[@]}" "$v" "$m"
  umount /dev/fuse
  chown -R $user_id:$user_id "$work"
  user_home=$HOME
  mkdir -p "$view/no-fusermount"
  mount --bind /dev/null "$(command -v fusermount3 || echo /dev/null)"
  output=$(as_user timeout 600 "$user_bin/mount.nacre" "${secret[@]}" "$v" "$m" 2>&1)
  code=$?
  umount "$(command -v fusermount3)" 2>/dev/null
  [ $code = 8 ] && grep -q 'fusermount3 is missing.*fuse3' <<<"$output" ||
    failed "without fusermount3: exit $code: $output"
  chown -R 0:0 "$work"

  # --- mount(8) finds the helper by its name.
  mkdir "$view/upper" "$view/work"
  if mount -t overlay overlay -o "lowerdir=/usr/sbin,upperdir=$view/upper,workdir=$view/work" \
    /usr/sbin 2>/dev/null; then
    cp -P "$NACRE_BIN/mount.nacre" /usr/sbin/
    expect 0 '' mount -t nacre -o "ro,passphrase-file=$work/passphrase" "$v" "$m"
    check "mount -t nacre" cmp "$work/random" "$m/random"
    grep -a " $m " /proc/self/mountinfo | grep -q ' fuse.nacre ' || failed "not of type fuse.nacre"
    unmount_it || failed "umount: $(cat "$work/umount.log")"
    echo "$v $m nacre noauto,passphrase-file=$work/passphrase 0 0" >"$view/fstab"
    expect 0 '' mount --fstab "$view/fstab" "$m"
    check "mount by fstab" cmp "$work/random" "$m/random"
    umount "$m"
    check "the daemon of a mount by fstab stays" wait_for_daemons
  else
    skip_part "mount -t nacre" "no overlay can be mounted over /usr/sbin"
  fi

  # --- Bound to a second place, it lives on there.
  mount_it || failed "mount: $(cat "$work/mount.log")"
  mount --bind "$m" "$work/mnt2"
  expect 0 "stays mounted at $work/mnt2" nacre umount "$m"
  check "wrong content at the second place" cmp "$work/random" "$work/mnt2/random"
  expect 0 '^$' nacre umount "$work/mnt2"
  check "the daemon of a bound mount stays" wait_for_daemons
fi

verdict
