# SPDX-License-Identifier: Apache-2.0
# For tests that run as root and look at what an ordinary user can do; sourced by bash. The script
# starts again in a mount namespace of its own, in which there is a user of uid 12345, /dev/fuse is
# open to everybody, and /etc/fuse.conf may be changed: the machine itself is left as it is.
#
#   . tests/support/user_view.sh
#   enter_user_view "$@"            as root; afterwards view, user_bin and user_source are set
#   as_user COMMAND…  as_other COMMAND…
#   set_fuse_conf LINE…             what /etc/fuse.conf holds from now on
user_id=12345
other_id=12346

enter_user_view() {
  if [ -z "${NACRE_VIEW-}" ]; then
    local status=0
    NACRE_VIEW=$(mktemp -d /tmp/nacre-view.XXXXXX)
    export NACRE_VIEW
    chmod 755 "$NACRE_VIEW"
    unshare --mount --propagation private bash "$0" "$@" || status=$?
    rm -rf --one-file-system "$NACRE_VIEW"
    exit $status
  fi
  view=$NACRE_VIEW
  leave_others_mounts
  # The folders above a checkout may be closed to others; these are not.
  user_bin=$view/bin user_source=$view/source
  mkdir "$user_bin" "$user_source"
  mount --bind "${NACRE_BIN:?}" "$user_bin"
  mount --bind "$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)" "$user_source"
  { grep -v ":$user_id:" /etc/passwd
    echo "nacretest:x:$user_id:$user_id::/nonexistent:/bin/sh"; } >"$view/passwd"
  mount --bind "$view/passwd" /etc/passwd
  mknod -m 666 "$view/fuse" c 10 229
  mount --bind "$view/fuse" /dev/fuse
  set_fuse_conf
  mount --bind "$view/fuse.conf" /etc/fuse.conf
}
# Mounts of other tests came along into the namespace. Held here, they would keep the daemons of those
# tests from ending.
leave_others_mounts() {
  local target
  findmnt -rn -o FSTYPE,TARGET | sed -n 's/^fuse[^ ]* //p' | sort -r | while read -r target; do
    umount -l -- "$(printf '%b' "$target")" 2>/dev/null || :
  done
}
set_fuse_conf() { printf '%s\n' "$@" >"$view/fuse.conf"; }

run_as() {
  local id=$1
  shift
  # Sanitizers' log folders and the like come along; what belongs to root's session does not.
  setpriv --reuid "$id" --regid "$id" --clear-groups \
    env -u LD_PRELOAD -u XDG_RUNTIME_DIR -u TMPDIR HOME="${user_home:-/nonexistent}" NACRE_BIN="$user_bin" \
    PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "$@"
}
as_user() { run_as $user_id "$@"; }
as_other() { run_as $other_id "$@"; }
