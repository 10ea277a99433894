#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# overlayfs with its upper directory in a mount, as containers and live systems use it: everything
# that is done in the merged tree is what the same done on an upper directory elsewhere gives, also
# after a remount. Hard links that are made on top to files of a lower directory in a mount are left
# out: docs/KERNEL.md says why.
. "$(dirname "$0")/../support/mount_harness.sh"
is_root || skip "only root can mount overlayfs"
grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null ||
  skip "this kernel has no overlayfs"

# Not on the work folder's file system: that may be an overlayfs itself, which takes no upper one.
plain=$work/plain merged=$work/merged
mkdir "$plain" "$merged"
mount -t tmpfs none "$plain"
make_lower() {
  mkdir -p "$1"/{lower/d/deep,upper,work}
  local i
  for i in $(seq 20); do echo "file $i" >"$1/lower/d/$i"; done
  echo a >"$1/lower/a"
  echo deep >"$1/lower/d/deep/x"
  ln -s a "$1/lower/link"
}
on_top() { # FOLDER COMMAND
  mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$merged" ||
    return 1
  local status=0
  (cd "$merged" && "$2") || status=$?
  umount "$merged"
  return $status
}
change() {
  mv a moved && rm d/1 d/2 && mv d/3 d/4 && rm -r d/deep && mkdir d/deep && echo new >d/deep/y &&
    echo more >>d/5 && chmod 600 d/7 && mkdir made && mv d/8 made/ && rm link &&
    mkdir link && cp -a d/9 copy && truncate -s 1M d/10
}
again() { rm moved && echo back >a && mv made elsewhere && rm -r d/deep && ls -R . >/dev/null; }
contents() { (find . ! -path . -printf '%y %m %n %p\n' -type f -exec sha256sum {} + | sort); }

make_volume
mount_volume
make_lower "$plain"
if ! on_top "$plain" true; then skip "overlayfs takes no upper directory even on tmpfs"; fi
make_lower "$mnt"
for step in change again; do
  on_top "$plain" $step || fail "$step, on tmpfs"
  on_top "$mnt" $step || fail "$step, with the upper directory in the volume"
  on_top "$plain" contents >"$work/wanted"
  on_top "$mnt" contents >"$work/got"
  diff "$work/wanted" "$work/got" || fail "$step gives something else than on tmpfs"
  remount
  on_top "$mnt" contents >"$work/got"
  diff "$work/wanted" "$work/got" || fail "$step is not what it was after a remount"
done
[ -c "$mnt/upper/d/1" ] || fail "a name that was removed has no whiteout"
umount "$plain"
finish
