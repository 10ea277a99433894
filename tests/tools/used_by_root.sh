#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user's volume that root uses once (sudo, a backup job): afterwards nothing in it, nor what root's
# commands left in the user's home, is closed to the user. For each way to use it: a new volume of the
# user's, root's command, then the user's mount.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "skipped: used_by_root: $*"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can use what is somebody else's"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
. "$here/../support/user_view.sh"
enter_user_view "$@"

failures=0
failed() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
work=$view/work home=$view/work/home
user_home=$home
mkdir -m 755 "$work"
install -d -o $user_id -g $user_id "$home"
printf 'correct horse battery staple\n' >"$home/passphrase"
chown $user_id:$user_id "$home/passphrase"
v=$home/vault m=$home/private
as_user mkdir "$m"
secret=(--passphrase-file "$home/passphrase")
cheap=(--kdf-memory 8192 --kdf-time 1)
export HOME=$work/root XDG_RUNTIME_DIR=
mkdir "$HOME"
: >"$HOME/.profile"
unset XDG_CONFIG_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR
PATH=$NACRE_BIN:$PATH

user_mounts() { as_user timeout 600 "$user_bin/mount.nacre" "${secret[@]}" "$@" "$v" "$m"; }
user_unmounts() { as_user timeout 600 "$user_bin/nacre" umount "$m"; }
new_volume() {
  rm -rf "$v"
  # A volume that is made anew is another one.
  rm -rf "$home/.config" "$HOME/.config"
  as_user "$user_bin/mkfs.nacre" "${secret[@]}" "${cheap[@]}" "$v" >"$work/said" 2>&1 &&
    user_mounts >"$work/said" 2>&1 && as_user sh -c "echo mine >$m/a" && user_unmounts ||
    failed "the user makes a volume: $(cat "$work/said")"
}
still_opens() { # AFTER
  local foreign
  # Sockets of a killed daemon are nobody's obstacle: the next mount takes them away.
  foreign=$(find "$v" "$home" ! -type s \( ! -user $user_id -o ! -group $user_id \) | head -5)
  [ -z "$foreign" ] || failed "after $1 these are not the user's:" $foreign
  if user_mounts >"$work/said" 2>&1; then
    [ "$(as_user cat "$m/a")" = mine ] || failed "after $1 the user's file reads otherwise"
    as_user sh -c "echo more >$m/more" || failed "after $1 the user cannot write"
    user_unmounts || failed "after $1 the user cannot unmount"
  else
    failed "after $1 the user cannot mount: $(cat "$work/said")"
  fi
}
by_root() { # WHAT COMMAND…
  local what=$1
  shift
  new_volume
  "$@" >"$work/said" 2>&1 </dev/null || failed "$what by root: $(cat "$work/said")"
  still_opens "$what by root"
}
root_mounts() { mount.nacre "${secret[@]}" "$@" "$v" "$m"; }
root_works() {
  root_mounts "$@" && head -c 3000000 /dev/urandom >"$m/by_root" && nacre sync "$m" &&
    nacre trim "$m" && nacre umount "$m"
}
root_is_killed() {
  root_mounts && echo x >"$m/x" && nacre sync "$m" && kill -9 "$(pgrep -f "mount.nacre.* $v $m")"
  umount -l "$m"
}
without_lock() { rm -f "$v/lock" && "$@"; }

by_root "a mount" root_works
by_root "a mount without a lock file" without_lock root_works
by_root "a mount with a log in the user's home" root_works --log-file "$home/log"
user_mounts --log-file "$home/log" >"$work/said" 2>&1 && user_unmounts ||
  failed "the user's mount goes on with the log: $(cat "$work/said")"
by_root "a mount read-only" without_lock bash -c \
  "mount.nacre -o ro --passphrase-file $home/passphrase $v $m && nacre umount $m"
by_root "a mount that was killed" root_is_killed
by_root "nacre key add" nacre key add "$v" --recovery "${secret[@]}"
# A key that somebody else changed is asked about; what is looked at here is who may read it.
rotate() { nacre key rotate "$v" "${secret[@]}" && rm -rf "$home/.config"; }
by_root "nacre key rotate" rotate
by_root "nacre trim" nacre trim "$v" "${secret[@]}"
by_root "nacre scrub" nacre scrub "$v"
by_root "fsck.nacre" fsck.nacre --deep "$v" "${secret[@]}"
by_root "fsck.nacre --repair" fsck.nacre --repair --deep "$v" "${secret[@]}"

# With sudo -E, or where sudo keeps HOME, root's commands write the user's own lists.
new_volume
rm -rf "$home/.config"
HOME=$home root_works >"$work/said" 2>&1 || failed "a mount by root in the user's home: $(cat "$work/said")"
still_opens "a mount by root with the user's HOME"
as_user test -r "$home/.config/nacre/known_volumes" ||
  failed "the user's list of volumes is closed to the user"

# What root makes in the user's empty folder.
rm -rf "$v" "$home/.config" "$HOME/.config"
as_user mkdir "$v"
mkfs.nacre "${secret[@]}" "${cheap[@]}" "$v" >"$work/said" 2>&1 || failed "mkfs.nacre by root: $(cat "$work/said")"
user_mounts >"$work/said" 2>&1 && as_user sh -c "echo mine >$m/a" && user_unmounts ||
  failed "the user writes to what root made: $(cat "$work/said")"
still_opens "mkfs.nacre by root"
as_user mkdir "$home/copy" "$home/saved"
nacre backup "$v" "$home/copy" >"$work/said" 2>&1 || failed "nacre backup by root: $(cat "$work/said")"
fsck.nacre --salvage "$home/saved" "$v" "${secret[@]}" >"$work/said" 2>&1
[ -e "$home/saved/superblock" ] || failed "fsck.nacre --salvage by root: $(cat "$work/said")"
for made in copy saved; do
  rm -rf "$v" "$home/.config"
  mv "$home/$made" "$v"
  still_opens "root made the $made"
done

# A folder of root's for a group: whoever is in it made the volume.
new_volume
chown root:$user_id "$v"
chmod 2770 "$v"
nacre key add "$v" --recovery "${secret[@]}" >"$work/said" 2>&1 || failed "in a group's folder: $(cat "$work/said")"
user_mounts >"$work/said" 2>&1 && user_unmounts || failed "a group's folder is closed to it: $(cat "$work/said")"

# What an earlier version left: the answer says what helps.
new_volume
chown root "$v/keyring" "$v/keyring.copy"
user_mounts >"$work/said" 2>&1 && { failed "a keyring that is closed was read"; user_unmounts; }
grep -q "chown -R $user_id:$user_id $v" "$work/said" || failed "no help for files of root's: $(cat "$work/said")"

# A volume that root made elsewhere and gave away holds a root directory of root's.
rm -rf "$v" "$home/.config"
mkfs.nacre "${secret[@]}" "${cheap[@]}" "$v" >"$work/said" 2>&1 && chown -R $user_id:$user_id "$v"
user_mounts >"$work/said" 2>&1 && user_unmounts || failed "a volume of root's that was given away: $(cat "$work/said")"
grep -q "belongs to user 0.*-o uid=$user_id" "$work/said" || failed "not said why nothing can be written: $(cat "$work/said")"
user_mounts -o uid=$user_id >"$work/said" 2>&1 && as_user touch "$m/mine" && user_unmounts || failed "-o uid= does not help"
! grep -q 'belongs to user 0' "$work/said" || failed "said though it helped"

# In a folder of root's everything stays root's.
rm -rf "$work/own" && mkfs.nacre "${secret[@]}" "${cheap[@]}" "$work/own" >"$work/said" 2>&1
[ -z "$(find "$work/own" ! -user 0)" ] || failed "root's own volume has files of others"
[ "$(stat -c %a "$work/own/keyring" "$work/own/db" | tr '\n' ' ')" = "600 700 " ] || failed "modes changed"

[ $failures = 0 ] || echo "$failures expectations failed"
exit $((failures > 0))
