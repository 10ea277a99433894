#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# peerbench.sh on tiny files: that it measures every step, compares what it reads, and leaves nothing
# behind, whatever happens. What it measures is not looked at, and the kernel's caches stay.
. "$(dirname "$0")/../tools/command_harness.sh"
needs_mounts
tool=$(realpath "$(dirname "$0")/peerbench.sh")
mkdir "$work/disk"
cheap_programs "$work/programs"
NACRE_BIN=$work/programs
measure=("$tool" --bin "$NACRE_BIN" --work "$work/disk" --as "$(id -un)" --keep-caches --big 2 --inc 1 --files 20
  --random 1 --seconds 1 --steps 'big inc tree')
cheap_one=(--add cheap
  '{bin}/mkfs.nacre --passphrase-file {passphrase} {back}'
  '{bin}/mount.nacre --passphrase-file {passphrase} {back} {mnt}' '{bin}/nacre umount {mnt}')

leaves_nothing() {
  check "$1: its folder is gone" [ -z "$(ls "$work/disk")" ]
  check "$1: nothing is mounted" [ -z "$(findmnt -rn -o TARGET | grep -F "$work")" ]
  check "$1: no daemon is left" [ -z "$(daemons)" ]
}

# --- All steps, on the file system itself and on a volume.
"${measure[@]}" --rounds 1 --only 'native nacre' --json "$work/json" >"$work/table" 2>"$work/said" ||
  failed "exit $?: $(cat "$work/table" "$work/said")"
for step in big_write big_read inc_write inc_read untar list read_all remove stored_big stored_inc stored_tree; do
  check "a row of $step in: $(cat "$work/table")" grep -qE "^\| $step +(\| [0-9][0-9.,]* +){2}\|$" "$work/table"
done
check "six comparisons: $(cat "$work/table")" grep -qxF 'Read back and compared: 6 times, 0 differed.' "$work/table"
check "all of it is in the JSON" python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
rounds = {len(system["rounds"]) for row in document["rows"] for system in row["systems"].values()}
sys.exit(document["schema"] != "nacre peerbench 1" or len(document["rows"]) != 11 or rounds != {1})' "$work/json"

# --- Two rounds with one that was added.
"${measure[@]}" --rounds 2 --only native --steps inc "${cheap_one[@]}" >"$work/table" 2>"$work/said" ||
  failed "exit $?: $(cat "$work/table" "$work/said")"
check "who begins changes: $(cat "$work/said")" [ "$(grep -oE 'round [12], [a-z]+' "$work/said" | tr '\n' ';')" = \
  'round 1, native;round 1, cheap;round 2, cheap;round 2, native;' ]
leaves_nothing "done"

# --- What goes wrong.
expect 2 'there is no file system zfs' "${measure[@]}" --only zfs
expect 2 'there is no option --round' "${measure[@]}" --round 3
expect 2 'needs a value' "${measure[@]}" --rounds
expect 2 'at least 1' "${measure[@]}" --rounds 0
expect 2 '--add needs' "${measure[@]}" --add one
expect 1 'broken, make: it cannot be made' "${measure[@]}" --rounds 1 --only native --steps inc \
  --add broken 'echo it cannot be made; exit 1' true ''
expect 1 'broken cannot be mounted: it cannot be mounted' "${measure[@]}" --rounds 1 --only native --steps inc \
  --add broken true 'echo it cannot be mounted; exit 1' ''
expect 1 'unsynced, stored_inc: it cannot be synced' "${measure[@]}" --rounds 1 --only native --steps inc \
  --add unsynced "${cheap_one[2]}" "test ! -e {back}.once && touch {back}.once && ${cheap_one[3]}" "${cheap_one[4]}"
expect 1 'absent is not mounted, and nothing is at work on it' "${measure[@]}" --rounds 1 --only native --steps inc \
  --add absent true true ''
leaves_nothing "without a mount"

# --- Told to end in the midst of it.
"${measure[@]}" --rounds 100000 --only native --steps inc "${cheap_one[@]}" >"$work/log" 2>&1 &
told=$!
for _ in $(seq 600); do
  if findmnt -rn -o TARGET | grep -qF "$work" || ! kill -0 "$told"; then break; fi
  sleep 1
done
check "it mounts: $(cat "$work/log")" kill -TERM "$told"
wait "$told"
check "it ends at once" [ $? = 143 ]
leaves_nothing "told to end"

verdict
