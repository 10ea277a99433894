#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Backups by tar and rsync whose outcome depends on what the file system says: holes, times, inode
# numbers, and files that are changed in place.
. "$(dirname "$0")/app_harness.sh"
needs tar rsync python3
python3 "$source_root/tests/support/make_tree.py" "$work/tree" "$(counts 400 4000)" 30
size_mib=$(counts 8 200)

# tar --sparse, both ways: by holes and by zeros, of what was made with holes and what was punched.
sparse() {
  rm -rf s t && mkdir s t
  truncate -s "${size_mib}M" s/all-hole s/islands s/punched
  for at in 0 3 5; do
    head -c 70000 /dev/zero | tr '\0' x | dd of=s/islands bs=64k seek=$((at * 16)) conv=notrunc status=none
  done
  head -c 2000000 /dev/zero | tr '\0' y >s/punched
  fallocate -p -o 65536 -l 655360 s/punched
  for way in seek raw; do
    tar --sparse --hole-detection=$way -cf $way.tar -C s .
    mkdir t/$way && tar --sparse -xf $way.tar -C t/$way
    (cd t/$way && sha256sum *)
    [ "$(stat -c %s $way.tar)" -lt 3500000 ] || echo "$way.tar stores holes: $(stat -c %s $way.tar) bytes"
  done
  [ "$(du -k t/seek/islands | cut -f1)" -lt 1000 ] || echo "tar made no holes"
}
# tar --listed-incremental: level 1 has what changed, moved and went, and nothing else.
levels() {
  rm -rf tree out snapshot* level* && cp -a "$work/tree" tree
  tar -c -f level0.tar -g snapshot tree
  sleep 1.1 # tar takes what is as new as the snapshot for changed
  cp snapshot snapshot1
  echo more >>tree/added
  mv "$(find tree -name f3.c)" tree/moved.c
  rm -r "$(find tree -mindepth 1 -type d | LC_ALL=C sort | head -n 1)"
  tar -c -f level1.tar -g snapshot1 tree
  tar -tf level1.tar | grep -v '/$' | LC_ALL=C sort
  mkdir out && tar -x -g /dev/null -f level0.tar -C out && tar -x -g /dev/null -f level1.tar -C out
  diff -r --no-dereference tree out/tree && echo restored
}
# After a new mount its device number is another one, which tar is told to overlook.
level2() {
  tar -c -f level2.tar -g snapshot1 --no-check-device tree
  echo "files at level 2: $(tar -tf level2.tar | grep -vc '/$')"
}
# rsync writes into files that are there.
in_place() {
  rm -rf big from && mkdir from
  python3 - "$size_mib" <<'END'
import random, sys
chance = random.Random(7)
data = bytearray(chance.randbytes(1 << 20) * int(sys.argv[1]))
open("big", "wb").write(data)
for _ in range(40):
    at = chance.randrange(len(data))
    data[at:at + 900] = chance.randbytes(700)  # what follows moves
open("from/big", "wb").write(data)
END
  ln big other-name
  rsync --inplace --no-whole-file --stats from/big big | grep -E 'Literal|Matched' | tr -d ,
  cmp from/big big
  stat -c '%h %s' big
  head -c 3000000 from/big >part && rsync --append-verify from/big part && cmp from/big part
  rsync --inplace --sparse "$work/islands" sparse && cmp "$work/islands" sparse
  rm other-name
}
looks() { sha256sum big part sparse t/*/*; }

truncate -s 4M "$work/islands"
printf island | dd of="$work/islands" bs=1 seek=2000000 conv=notrunc status=none
start_volume
tell tar rsync
both sparse
both levels
both in_place
again looks
both level2
both in_place
finish
