#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A mount can be controlled wherever its commands are given: after a logout took the runtime folder,
# with another one, without any; and where no socket is left, the commands look up what they cannot
# ask, and claim no loss that they did not see. Nothing of that lies in the volume's folder, where
# plain copies would meet it, unless there is no other place.
. "$(dirname "$0")/command_harness.sh"
. "$(dirname "$0")/../support/left_sockets.sh"
needs_mounts
v=$work/vault m=$work/private
mkdir "$m"
run=$work/runtime
login() { rm -rf "$run"; mkdir -m 700 "$run"; }
# Root's runtime folder is /run whatever the variable says: its socket is taken away by hand.
logout() {
  login
  is_root && rm -f "/run/nacre/$(mountpoint -d "$m" | tr : -).sock"
  return 0
}
export XDG_RUNTIME_DIR=$run
mount_it() { mount.nacre "${secret[@]}" "$@" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"; }
sockets_in_volume() { find "$v" -type s; }
second_socket() { echo "/tmp/nacre-$(id -u)/nacre/$(mountpoint -d "$m" | tr : -).sock"; }
works() { # HOW
  [ -z "$(sockets_in_volume)" ] || failed "$1: a socket lies in the volume's folder"
  expect 0 '^$' nacre sync "$m"
  expect 0 'mounted|volume' nacre stats "$m"
  expect 0 'mounted|volume' nacre stats "$v"
  expect 32 'already mounted at|mount point .* in use' mount.nacre "${secret[@]}" "$v" "$m"
  expect 0 '^$' nacre umount "$m"
  [ -z "$(daemons)" ] || failed "$1: nacre umount returned before the daemon had ended"
  [ "$(stat -c %s "$v/lock")" = 0 ] || failed "$1: the lock still names somebody"
}
make_volume "$v"
login

mount_it
works "nothing happened"
mount_it
logout
works "logged out and in again"
mount_it
logout
unset XDG_RUNTIME_DIR
works "without a runtime folder"
export XDG_RUNTIME_DIR=$run
# Mounted where none was, asked from where one is.
env -u XDG_RUNTIME_DIR mount.nacre "${secret[@]}" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount without a runtime folder"
logout
works "mounted without a runtime folder"
rm -rf "$run"
mount_it
works "with a runtime folder that is not there"
login
mount_it
logout
expect 0 '' nacre key add "$v" --recovery "${secret[@]}"
expect 0 '' nacre backup "$v" "$work/copy"
expect 0 '' nacre trim "$v"
works "commands that name the volume"

# A plain copy of the volume's folder takes all of it without a word.
mount_it
cp_said=$(cp -a "$v" "$work/plain_copy" 2>&1 && tar -cf "$work/plain_copy.tar" -C "$v" . 2>&1 &&
  python3 -c 'import shutil, sys; shutil.copytree(*sys.argv[1:])' "$v" "$work/other_copy" 2>&1)
[ $? = 0 ] && [ -z "$cp_said" ] || failed "plain copies while it is mounted: $cp_said"
socket=$(second_socket)
expect 0 '^$' nacre umount "$m"
! is_left_behind "$socket" || failed "$socket is left"
rm -rf "$work"/plain_copy* "$work/other_copy"

# A name of the source that is not the volume's folder, and a mount that may write nothing there.
mount_it -o fsname=something
is_root || logout
expect 0 '^$' nacre sync "$m"
expect 0 '^$' nacre umount "$m"
mount_it -o ro
is_root || logout
[ -z "$(sockets_in_volume)" ] || failed "a read-only mount made a socket in the volume's folder"
expect 0 'mounted|volume' nacre stats "$m"
expect 0 '^$' nacre umount "$m"

# No socket is left: the lock tells.
take_sockets() { logout; rm -f "$(second_socket)"; [ -n "$(daemons)" ] || failed "no daemon"; }
mount_it
echo kept >"$m/kept"
take_sockets
expect 8 "no daemon answers.*lock is held.*process $(daemons)" nacre sync "$m"
expect 8 'no daemon answers' nacre stats "$m"
exec 8<"$m/kept"
expect 32 'process [0-9]+ \([^)]*\) has a file open' nacre umount "$m"
exec 8<&-
expect 0 '^$' nacre umount "$m"
[ -z "$(daemons)" ] || wait_for_daemons || failed "the daemon stays"
[ "$(stat -c %s "$v/lock")" = 0 ] || failed "nacre umount returned before the volume was closed"
mount_it
[ "$(cat "$m/kept")" = kept ] || failed "what was written before is lost"
mount_it_read_only() { nacre umount "$m"; mount_it -o ro; }
mount_it_read_only
logout
rm -f "$(second_socket)"
expect 0 '^$' nacre umount "$m"
wait_for_daemons || failed "the daemon of a read-only mount stays"

# The daemon was killed: that is loss, and is said; its sockets go.
mount_it
socket=$(second_socket)
kill -9 $(daemons)
wait_for_daemons || failed "the killed daemon stays"
expect 8 'no daemon answers.*It has ended' nacre sync "$m"
expect 8 'ended without closing the volume: what was not synced before may be lost' nacre umount "$m"
[ ! -e "$socket" ] || failed "the dead daemon's socket is left"
# One that an earlier mount left in the volume's folder goes with the next mount that may write.
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$v/control.0-9999.sock"
mount_it
works "after a daemon was killed"

# Where neither /run nor /tmp gives a place the volume's folder does; in a view of the machine.
if is_root; then
  cat >"$work/no_other_place.sh" <<'END'
. "$1/tests/support/user_view.sh"
leave_others_mounts
mount_it() { mount.nacre --passphrase-file "$1" "$2" "$3"; }
daemon() { pgrep -f "^[^ ]*mount.nacre .*$1"; }
for taken in /run/nacre /tmp/nacre-0; do
  mkdir -p $taken && mount -t tmpfs -o mode=755 none $taken || exit
done
shift
mount_it "$@" || exit
[ "$(find "$2" -type s | wc -l)" = 1 ] || echo "sockets: $(find "$2" -type s)"
nacre sync "$3" && nacre stats "$2" >/dev/null && nacre umount "$3" || exit
[ -z "$(find "$2" -type s)" ] || echo "a socket is left"
mount_it "$@" && kill -9 $(daemon "$2") || exit
while [ -n "$(daemon "$2")" ]; do sleep 0.1; done
nacre umount "$3" 2>&1 | grep -q 'may be lost' || exit
[ -z "$(find "$2" -type s)" ] || echo "the dead daemon's socket is left"
END
  expect 0 '^$' unshare --mount --propagation private bash "$work/no_other_place.sh" "$PWD" "$work/passphrase" "$v" "$m"
fi

# Somebody else's socket in the volume's folder, and links that lead elsewhere, are not asked.
if is_root && command -v python3 >/dev/null; then
  mount_it
  name=control.$(mountpoint -d "$m" | tr : -).sock
  take_sockets
  python3 - "$work/liar" "$v/$name" <<'END' &
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
os.symlink(sys.argv[1], sys.argv[2] + ".link")
os.rename(sys.argv[2] + ".link", sys.argv[2])
while True:
    connection, _ = listener.accept()
    open(sys.argv[1] + ".asked", "w").close()
    try:
        connection.sendall(b'{"ok": true}\n')
    except OSError:
        pass
    connection.close()
END
  liar=$!
  for _ in $(seq 3000); do [ -L "$v/$name" ] && break; sleep 0.1; done
  expect 8 'no daemon answers' nacre sync "$m"
  [ ! -e "$work/liar.asked" ] || failed "a link in the volume's folder was followed"
  # Of root's own, but not the lock's holder.
  rm "$v/$name"
  ln "$work/liar" "$v/$name"
  expect 8 'does not hold the lock' nacre sync "$m"
  rm "$v/$name"
  kill $liar
  wait $liar 2>/dev/null
  expect 0 '^$' nacre umount "$m"
fi
expect 0 clean fsck.nacre --deep "${secret[@]}" "$v"
verdict
