#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What units of systemd with ProtectHome=, ReadOnlyPaths= and PrivateTmp= do to a mount, by the same
# system calls without systemd: services that started before and after the mount see what they should,
# read-only ones cannot write, and none keeps the volume's daemon from ending.
. "$(dirname "$0")/app_harness.sh"
is_root || skip "needs root for mount namespaces"
needs unshare nsenter findmnt
LD_PRELOAD=$ready_keys make_volume
# The place in which all this happens is shared, as systemd makes /.
home=$work/house
mkdir "$home"
mount --bind "$home" "$home" && mount --make-shared "$home"
mnt=$home/private
mkdir "$mnt"
service() { # NAME COMMAND: in a namespace to which mounts and unmounts propagate, until end_service
  unshare -m --propagation slave sh -c "$2; touch '$work/$1.ready'; exec sleep 1000" &
  eval "$1=\$!"
  until_true test -e "$work/$1.ready"
}
inside() { nsenter -m -t "$1" "${@:2}"; }
service before true
mount_volume
echo text >"$mnt/file"
service after true
service readonly "mount -o bind,ro,remount '$mnt'"  # ProtectHome=read-only
service hidden "mount -t tmpfs none '$home'"        # ProtectHome=tmpfs
service tmp "mount -t tmpfs none /var/tmp"          # PrivateTmp=
for name in before after readonly tmp; do
  [ "$(inside "${!name}" cat "$mnt/file")" = text ] || fail "the service '$name' does not see the mount"
done
inside "$after" sh -c "echo more >>'$mnt/file'" || fail "a service cannot write"
! inside "$readonly" sh -c "echo no >>'$mnt/file'" 2>/dev/null || fail "a service with ProtectHome=read-only writes"
! inside "$hidden" test -e "$mnt/file" || fail "a service with ProtectHome=tmpfs sees the mount"
inside "$tmp" "$NACRE_BIN/nacre" sync "$mnt" || fail "nacre sync in a service"
[ "$(cat "$mnt/file")" = $'text\nmore' ] || fail "what a service wrote"
# The hidden one has a copy below its tmpfs; unmounting propagates there as well.
unmount_volume
wait_for_daemon "$volume"
mount_volume
[ "$(inside "$before" cat "$mnt/file")" = $'text\nmore' ] || fail "an older service does not see a new mount"
for name in before after readonly hidden tmp; do kill "${!name}" && wait "${!name}" 2>/dev/null || :; done
[ -d /run/systemd/system ] || skip_part "units themselves" "systemd does not run here"
unmount_volume
check_volume
umount "$home"
