#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fsck.nacre --repair of damage in db/, on a real volume: what it says, what a mount shows afterwards,
# and that taking it back gives every byte back.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume m=$work/mnt
mkdir "$m"
make_volume "$v"
expect_fsck() { expect "$1" "$2" fsck.nacre "${secret[@]}" "${@:3}" "$v"; }
mount_it() { expect 0 '^$' mount.nacre "${secret[@]}" "$v" "$m"; }
unmount_it() { expect 0 '^$' nacre umount "$m"; }
picture() {
  (cd "$m" && find . -printf '%P %y %m %s %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}
everything() { (cd "$v" && find db db.* segments superblock* keyring* -type f -exec sha256sum {} + 2>/dev/null | sort -k2); }

mount_it
mkdir "$m/folder"
for i in $(seq 300); do echo "file $i" >"$m/folder/$i"; done
head -c 3000000 /dev/urandom >"$m/folder/large"
picture >"$work/before"
unmount_it

# --- A page of each table, one after the other: the checkpoint has what was in it.
cp -a "$v" "$work/sound"
for table in "$v"/db/*.sst; do
  name=$(basename "$table")
  printf 'XX' | dd of="$table" bs=1 seek=1000 conv=notrunc status=none
  before=$(everything)
  expect_fsck 4 "damaged: rot: db/$name: page 0.*db/: .*made anew.*nothing was changed" --dry-run
  check "a dry run changes nothing" [ "$(everything)" = "$before" ]
  expect_fsck 1 "damaged: rot: db/$name: page 0.*clean.*repaired in.*--undo.*is kept in" --repair
  expect_fsck 0 'clean' --deep --scrub
  expect_fsck 0 'nothing to repair' --repair
  plan=$(basename "$v"/repair/*.plan .plan)
  check "the damaged one is kept" [ -d "$v/db.$plan" ]
  cp -a "$v" "$work/repaired"
  mount_it
  picture >"$work/after"
  check "after damage to $name all is there" cmp "$work/before" "$work/after"
  unmount_it
  expect_fsck 8 'changed since the repair' --undo "$plan"
  rm -rf "$v"
  mv "$work/repaired" "$v"
  forget_states
  expect_fsck 0 'taken back' --undo "$plan"
  check "all is as before" [ "$(everything)" = "$before" ]
  expect_fsck 0 'none of them had to be' --undo "$plan"
  rm -rf "$v"
  cp -a "$work/sound" "$v"
  forget_states
done

# --- Files without which RocksDB opens nothing.
for name in CURRENT "MANIFEST-*" IDENTITY; do
  for file in "$v"/db/$name; do
    printf 'XX' | dd of="$file" bs=1 seek=90 conv=notrunc status=none
  done
  expect_fsck 1 'damaged: rot: db/.*clean.*repaired' --repair
  expect_fsck 0 'clean' --deep --scrub
  mount_it
  picture >"$work/after"
  check "after damage to $name all is there" cmp "$work/before" "$work/after"
  unmount_it
  rm -rf "$v"
  cp -a "$work/sound" "$v"
  forget_states
done

# --- By the hash of its plan: a new db/ is made in the volume only once it is known to be the same.
rm "$v/db/CURRENT"
hash=$(fsck.nacre "${secret[@]}" --dry-run --json "$v" |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["plan_hash"])')
cp -a "$v" "$work/shown"
table=$(ls -S "$v"/db/*.sst | head -1)
printf 'XX' | dd of="$table" bs=1 seek=1000 conv=notrunc status=none
worse=$(everything)
expect_fsck 8 'other changes than those' --repair --expect-plan "$hash"
check "a refused repair changes nothing" [ "$(everything)" = "$worse" ]
check "and leaves no new db/" bash -c "! ls -d '$v'/db.* '$v/repair' 2>/dev/null"
rm -rf "$v"
mv "$work/shown" "$v"
expect_fsck 1 'missing.*CURRENT.*clean.*repaired' --repair --expect-plan "$hash"
expect_fsck 0 'clean' --deep --scrub
rm -rf "$v"
cp -a "$work/sound" "$v"
forget_states

rm "$v/db/CURRENT"
expect_fsck 1 'missing.*CURRENT.*clean.*repaired' --repair
rm -rf "$v"
cp -a "$work/sound" "$v"
forget_states

# --- Nothing is left of it.
rm "$v"/db/*
expect_fsck 4 'no row of db/ can be read.*--salvage' --repair
check "nothing is left behind" [ -z "$(ls -d "$v"/db.* 2>/dev/null)" ]
rmdir "$v/db"
expect_fsck 4 'db/ is missing.*--salvage' --repair
rm -rf "$v"
cp -a "$work/sound" "$v"
forget_states

# --- --json says the same to machines.
printf 'XX' | dd of="$(ls "$v"/db/*.sst | head -1)" bs=1 seek=1000 conv=notrunc status=none
expect 4 '"checkpoint": "20.*"step": "database"' fsck.nacre "${secret[@]}" --dry-run --json "$v"

verdict
