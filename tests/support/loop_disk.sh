# SPDX-License-Identifier: Apache-2.0
# A small ext4 disk of its own for a volume; sourced after mount_harness.sh, by root. Mounted at
# $disk, unmounted and freed however the test ends.
is_root || skip "needs root to mount a disk of its own"
command -v mkfs.ext4 >/dev/null || skip "there is no mkfs.ext4"
disk=$work/disk
# make_disk SIZE [MKFS OPTION]…
make_disk() {
  truncate -s "$1" "$work/disk.image"
  mkfs.ext4 -q -F "${@:2}" "$work/disk.image"
  mkdir "$disk"
  mount -o loop "$work/disk.image" "$disk" 2>"$work/loop.log" ||
    skip "no loop device: $(cat "$work/loop.log")"
  volume=$disk/volume
}
# grow_disk SIZE: false where a mounted file system may not grow (in a container).
grow_disk() {
  truncate -s "$1" "$work/disk.image"
  losetup -c "$(findmnt -nro SOURCE "$disk")"
  resize2fs "$(findmnt -nro SOURCE "$disk")" >"$work/resize.log" 2>&1
}
