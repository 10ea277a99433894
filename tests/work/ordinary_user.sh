#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an ordinary user may do: mount through fusermount3, keep others out, let them in where
# /etc/fuse.conf allows it and be told in clear words where it does not.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/../support/mount_harness.sh"
. "$(dirname "$0")/../support/left_sockets.sh"
is_root || skip "it plays three users; ctest runs the others as an ordinary user"
command -v fusermount3 >/dev/null || skip "there is no fusermount3"

chown -R $user_id:$user_id "$work"
user_home=$HOME
tool() { as_user timeout 600 "$user_bin/$1" "${@:2}"; }

tool mkfs.nacre --passphrase-file "$passphrase_file" "${cheap_kdf[@]}" "$volume" >/dev/null ||
  fail "an ordinary user cannot make a volume"
sockets=()
mount_as_user() {
  tool mount.nacre --passphrase-file "$passphrase_file" "$@" "$volume" "$mnt" || return
  sockets+=("/tmp/nacre-$user_id/nacre/$(findmnt -rn -o MAJ:MIN "$mnt" | tr : -).sock")
  [ -S "${sockets[-1]}" ] || fail "there is no ${sockets[-1]}"
}
unmount_as_user() { tool nacre umount "$mnt" || fail "an ordinary user cannot unmount"; }

# Mine alone: not even root may look in.
mount_as_user || fail "an ordinary user cannot mount"
as_user sh -c "echo mine >'$mnt/file'" || fail "the user cannot write"
[ "$(as_user stat -c %u:%g "$mnt/file")" = $user_id:$user_id ] || fail "the file is another's"
if as_other cat "$mnt/file" 2>/dev/null; then fail "another user could read"; fi
if cat "$mnt/file" 2>/dev/null; then fail "root could read without allow_other"; fi
if as_user chown 0 "$mnt/file" 2>/dev/null; then fail "the user gave a file to root"; fi
unmount_as_user

# /etc/fuse.conf says no: no mount, and the words that help.
set_fuse_conf '# nothing allowed'
if mount_as_user -o allow_other >"$work/refused" 2>&1; then
  fail "allow_other was granted against /etc/fuse.conf"
fi
grep -q user_allow_other "$work/refused" && grep -q /etc/fuse.conf "$work/refused" ||
  fail "the refusal does not name user_allow_other in /etc/fuse.conf: $(cat "$work/refused")"
! mountpoint -q "$mnt" || fail "refused, yet mounted"

# /etc/fuse.conf says yes: others may, within the permission bits.
set_fuse_conf user_allow_other
mount_as_user -o allow_other,default_permissions || fail "allow_other was refused"
[ "$(as_other cat "$mnt/file")" = mine ] || fail "another user cannot read with allow_other"
as_user chmod 600 "$mnt/file"
if as_other cat "$mnt/file" 2>/dev/null; then fail "another user read a file of mode 600"; fi
as_user chmod 777 "$mnt"
as_other sh -c "echo theirs >'$mnt/theirs'" || fail "another user cannot write where he may"
[ "$(stat -c %u "$mnt/theirs")" = $other_id ] || fail "what another user made is not his"
unmount_as_user

# fusermount3 -u works as well, and what was written is there.
mount_as_user || fail "an ordinary user cannot mount again"
[ "$(as_user cat "$mnt/theirs")" = theirs ] || fail "a file is gone"
as_user sh -c "echo late >'$mnt/late'"
as_user fusermount3 -u "$mnt" || fail "fusermount3 -u"
mount_as_user || fail "mounting right after fusermount3 -u"
[ "$(as_user cat "$mnt/late")" = late ] || fail "what was written before fusermount3 -u is gone"
unmount_as_user

# A mount point, a volume or a device that the user may not use: clear words, no mount.
refused() {
  local what=$1
  shift
  if "$@" >"$work/refused" 2>&1; then fail "$what was not refused"; fi
  [ -s "$work/refused" ] || fail "$what was refused without a word"
  ! grep -qiE 'terminate called|assert|sanitizer' "$work/refused" ||
    fail "$what: $(cat "$work/refused")"
}
chmod 600 "$view/fuse"
refused "a closed /dev/fuse" mount_as_user
grep -q /dev/fuse "$work/refused" || fail "the words do not name /dev/fuse: $(cat "$work/refused")"
chmod 666 "$view/fuse"
chown 0:0 "$mnt" && chmod 755 "$mnt"
refused "another's mount point" mount_as_user
chown $user_id:$user_id "$mnt"
chmod 700 "$volume" && chown 0:0 "$volume"
refused "another's volume" mount_as_user
chown $user_id:$user_id "$volume"

[ ${#sockets[@]} -gt 0 ] || fail "no control socket was seen"
for socket in "${sockets[@]}"; do
  ! is_left_behind "$socket" || fail "$socket was left behind"
done
tool fsck.nacre --deep --passphrase-file "$passphrase_file" "$volume" >"$work/fsck.log" 2>&1 ||
  fail "fsck.nacre --deep ended with $?: $(cat "$work/fsck.log")"
