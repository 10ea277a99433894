#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# overlayfs with its upper directory in a mount, as containers and live systems use it: everything
# that is done in the merged tree is what the same done on an upper directory elsewhere gives, also
# after a remount (docs/KERNEL.md, "Handles").
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

# One overlay goes on while the kernel forgets what it knew, and on a new mount, with hard links to
# files of the lower directory.
link() { ln d/11 eleven && ln d/12 d/twelve && echo more >>d/12 && echo more >>eleven && mv d/13 thirteen; }
look_twice() {
  local names='eleven d/11 d/12 d/twelve d/14 thirteen'
  ls -lR . >/dev/null && cat $names && stat -c '%n %h %s' $names && ls -lR . >/dev/null && cat $names
}
colder() {
  look_twice >"$work/got" 2>&1
  sync && { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null
  look_twice >>"$work/got" 2>&1
}
on_top "$plain" link || fail "links, on tmpfs"
on_top "$plain" colder
cp "$work/got" "$work/wanted"
on_top "$mnt" link || fail "links, with the upper directory in the volume"
ways=(nohandles handles)
if printf '%s\n' 6.16 "$(uname -r)" | sort -CV; then
  ways=(nohandles)
  skip_part "with handles" "since Linux 6.16 overlayfs finds nothing by its handle in FUSE"
fi
for way in "${ways[@]}" "${ways[@]}"; do
  if [ $way = handles ]; then remount; else remount -o $way; fi
  on_top "$mnt" colder
  diff "$work/wanted" "$work/got" || fail "hard links made on top, after a new mount with $way"
done
umount "$plain"
finish
