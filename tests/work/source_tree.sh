#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A source tree of 5,000 files (NACRE_LONG: 20,000) is unpacked, and is the same byte for byte with modes, times and
# links: at once, with the kernel's caches dropped, and after a new mount.
. "$(dirname "$0")/../support/mount_harness.sh"

files=5000
[ -z "${NACRE_LONG-}" ] || files=20000
python3 "$source_root/tests/support/make_tree.py" "$work/tree" $files
[ "$(find "$work/tree" -type f | wc -l)" -ge $files ] || fail "the tree is too small"
tar --format=pax -C "$work" -cf "$work/tree.tar" tree

make_volume
mount_volume
tar -C "$mnt" -xpf "$work/tree.tar"
same_tree "$work/tree" "$mnt/tree"
if is_root; then
  sync -f "$mnt"
  echo 2 >/proc/sys/vm/drop_caches
  same_tree "$work/tree" "$mnt/tree"
else
  skip_part "kernel caches dropped" "needs root"
fi
remount
same_tree "$work/tree" "$mnt/tree"

# What a tar made inside the volume says is the same tree too, and the space comes back.
tar --format=pax -C "$mnt" -cf - tree | tar -C "$work" -df - ||
  fail "tar made in the volume differs"
mv "$mnt/tree" "$mnt/moved"
same_tree "$work/tree" "$mnt/moved"
rm -rf "$mnt/moved"
[ -z "$(ls -A "$mnt")" ] || fail "rm -rf left something: $(ls -A "$mnt" | head)"
remount
[ -z "$(ls -A "$mnt")" ] || fail "what rm -rf removed came back: $(ls -A "$mnt" | head)"
finish
