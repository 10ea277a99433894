#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fsck.nacre --repair, --dry-run, --undo and --drop-damaged on a real volume, and what a mount shows
# afterwards.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume m=$work/mnt
mkdir "$m"
make_volume --codec none "$v"
chunk=65536
part=16384  # what a record holds of a chunk without a codec
# CODE WORDS OPTION…
expect_fsck() { expect "$1" "$2" fsck.nacre "${secret[@]}" "${@:3}" "$v"; }
mount_it() { expect 0 '^$' mount.nacre "${secret[@]}" "$v" "$m"; }
unmount_it() { expect 0 '^$' nacre umount "$m"; }
everything() { (cd "$v" && find db segments superblock* keyring* -type f -exec sha256sum {} + | sort -k2); }

mount_it
mkdir "$m/folder"
for i in 1 2 3; do head -c $((5 * chunk)) /dev/urandom >"$m/folder/file$i"; done
cp "$m"/folder/file? "$work"
echo words >"$m/words"
unmount_it

expect_fsck 0 'nothing to repair' --repair
check "no plan, no folder" [ ! -e "$v/repair" ]
expect_fsck 8 "no repair plan 'x'; there are no plans" --undo x
expect_fsck 2 'requires.*--repair' --drop-damaged
expect_fsck 2 '[-][-]undo.*names nothing' --undo ''
expect_fsck 2 'together' --repair --undo x
expect 16 'wrong key' fsck.nacre --repair --passphrase-file "$work/wrong" "$v"
mount_it
expect_fsck 32 'in use|mounted' --repair
unmount_it

# --- One record is damaged, and one copy of the keyring.
where=$(nacre dump tables --table chunks "${secret[@]}" "$v" | grep ' chunk 2 ' | head -1)
segment=$(sed -E 's/.* patch at 0 ([0-9]+):.*/\1/' <<<"$where")
offset=$(sed -E 's/.* patch at 0 [0-9]+:([0-9]+)\+.*/\1/' <<<"$where")
printf 'XXXX' | dd of="$(printf '%s/segments/%012d.seg' "$v" "$segment")" bs=1 \
  seek=$((offset + 1000)) conv=notrunc status=none
printf 'X' | dd of="$v/keyring.copy" bs=1 seek=50 conv=notrunc status=none
before=$(everything)
expect_fsck 4 'errors found.*To see what a repair would do: fsck.nacre --repair --dry-run' --deep
expect 4 'errors found.*To see which files are hit, with the key: fsck.nacre --deep' fsck.nacre --scrub "$v"
expect_fsck 4 'lost: inode [0-9]+, 16384 bytes at offset 131072: rot.*/folder/file.*nothing was changed' \
  --dry-run
check "a dry run changes nothing" [ "$(everything)" = "$before" ]

# --- By its hash, the plan that was shown is carried out, and no other.
hash_of_plan() {
  fsck.nacre "${secret[@]}" --dry-run --json "$@" "$v" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["plan_hash"])'
}
hash=$(hash_of_plan)
check "each plan has a seed of its own" [ "$hash" != "$(hash_of_plan)" ]
expect_fsck 4 "no others: fsck.nacre --repair --expect-plan $hash " --repair --dry-run --expect-plan "$hash"
expect_fsck 2 'requires.*--repair' --expect-plan "$hash"
expect_fsck 2 '64 hexadecimal digits' --repair --expect-plan ''
expect_fsck 2 '64 hexadecimal digits' --repair --expect-plan "${hash}0"
expect_fsck 8 'other changes than those.*Nothing was changed: look at' --repair --drop-damaged --expect-plan "$hash"
cp -a "$v" "$work/shown"
printf 'XXXX' | dd of="$(printf '%s/segments/%012d.seg' "$v" "$segment")" bs=1 \
  seek=$((offset + 1000 + 2 * part)) conv=notrunc status=none
worse=$(everything)
expect_fsck 8 'other changes than those.*Nothing was changed: look at' --repair --expect-plan "$hash"
check "a refused repair changes nothing" [ "$(everything)" = "$worse" ]
check "and writes no plan" [ ! -e "$v/repair" ]
rm -rf "$v"
mv "$work/shown" "$v"
expect_fsck 1 'lost: .*131072.*clean.*repaired in [0-9]+ steps, 1 range of bytes is lost.*--undo' \
  --repair --expect-plan "$hash"
expect_fsck 0 'clean' --deep
expect 0 'clean' fsck.nacre --scrub "$v"
expect_fsck 0 'nothing to repair' --repair
plan=$(basename "$v"/repair/*.plan .plan)

# --- What a program sees: good bytes of all files, EIO for the rest, and new bytes where it writes.
hurt=
mount_it
for i in 1 2 3; do
  if cmp -s "$work/file$i" "$m/folder/file$i" 2>/dev/null; then continue; fi
  check "more than one file is hit" [ -z "$hurt" ]
  hurt=$i
done
check "no file is hit" [ -n "$hurt" ]
expect 1 'Input/output error' bash -c "cat '$m/folder/file$hurt' >/dev/null"
for index in $(seq 0 7) $(seq 9 19); do
  check "part $index is good" cmp -n $part -i $((index * part)) "$work/file$hurt" \
    "$m/folder/file$hurt"
done
expect 1 'Input/output error' dd if="$m/folder/file$hurt" bs=$part skip=8 count=1 of=/dev/null
# A mount for writing is a change: the repair stands.
unmount_it
expect_fsck 8 'changed since the repair' --undo "$plan"

# --- Undone before anything else changed, every row and byte is as it was.
mkdir "$work/second"
v=$work/second/volume
make_volume --codec none "$v"
mount_it
head -c $((3 * chunk)) /dev/urandom >"$m/file"
cp "$m/file" "$work/file"
unmount_it
rm "$v/superblock.copy"
segment=$(ls "$v/segments" | head -1)
printf 'XXXX' | dd of="$v/segments/$segment" bs=1 seek=5000 conv=notrunc status=none
rows() { nacre dump tables "${secret[@]}" "$v"; }
before=$(rows && cat "$v"/segments/*.seg | sha256sum)
expect_fsck 1 'repaired' --repair
check "the repair changed rows" [ "$(rows && cat "$v"/segments/*.seg | sha256sum)" != "$before" ]
plan=$(basename "$v"/repair/*.plan .plan)
expect_fsck 0 'nothing was changed' --undo "$plan" --dry-run
expect_fsck 0 'steps of .* taken back' --undo "$plan"
check "what is not lost any more is said to be" bash -c \
  "! fsck.nacre ${secret[*]} --undo $plan $v | grep '^lost:'"
check "all is as before" [ "$(rows && cat "$v"/segments/*.seg | sha256sum)" = "$before" ]
check "also what was missing" [ ! -e "$v/superblock.copy" ]
expect_fsck 0 'none of them had to be' --undo "$v/repair/$plan.plan"
expect_fsck 8 "its plans are: $plan" --undo other

# --- Holes in the place of what is damaged.
expect_fsck 1 'replaced by a hole.*clean' --repair --drop-damaged \
  --expect-plan "$(hash_of_plan --repair --drop-damaged)"
expect_fsck 0 'clean' --deep
mount_it
python3 - "$work/file" "$m/file" $part <<'PY' || failed "a dropped part is zeros, all others are good"
import sys
want, got, part = open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read(), int(sys.argv[3])
assert len(want) == len(got)
zeros = 0
for at in range(0, len(want), part):
    if got[at:at + part] == want[at:at + part]:
        continue
    assert got[at:at + part] == bytes(part), at
    zeros += 1
assert zeros == 1, zeros
PY
unmount_it
expect_fsck 0 '"left_count": 0.*"steps": \[\]' --repair --json
check "--json is no JSON" bash -c \
  "fsck.nacre --dry-run --json --passphrase-file $work/passphrase $v | python3 -m json.tool >/dev/null"

verdict
