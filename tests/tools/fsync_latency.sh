#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/measure/fsync_latency.py: the table that it prints, and that it leaves nothing mounted, whatever happens.
. "$(dirname "$0")/command_harness.sh"
needs_mounts
cheap_programs "$work/programs"
NACRE_BIN=$work/programs
tool=$(dirname "$0")/../measure/fsync_latency.py
measure=("$tool" --bin "$NACRE_BIN" --work "$work/measured")
few=(--rounds 2 --count 5 --mib 1 --transports device)

leaves_nothing() {
  check "$1: its folder is gone" [ ! -e "$work/measured" ]
  check "$1: nothing is mounted" [ -z "$(findmnt -rn -o TARGET | grep -F "$work")" ]
  check "$1: no daemon is left" [ -z "$(daemons)" ]
}

number='[0-9]+, [0-9]+' ratio='[0-9]+\.[0-9]+ ×'
others="( $number: $ratio \|)?" # gocryptfs, where there is one
"${measure[@]}" "${few[@]}" >"$work/table" 2>"$work/said" || failed "exit $?: $(cat "$work/said")"
for line in "\| µs, p50 and p99 \| [^|]+ \|( gocryptfs \|)? Nacre, \`/dev/fuse\` \|" \
  "\|(---\|){3,4}" "\| appending \| $number \|$others $number: $ratio \|" \
  "\| overwriting 1 MiB at random \| $number \|$others $number: $ratio \|"; do
  check "a line '$line' in: $(cat "$work/table")" grep -qxE "$line" "$work/table"
done
check "a table and nothing else" [ "$(wc -l <"$work/table")" = 4 ]
command -v gocryptfs >/dev/null ||
  check "it says what is left out" grep -q 'gocryptfs is not installed: left out' "$work/said"
leaves_nothing "done"

# --- What goes wrong.
mkdir "$work/measured"
echo kept >"$work/measured/file"
expect 1 'is there already' "${measure[@]}" "${few[@]}"
check "a folder that was there stays" [ "$(cat "$work/measured/file")" = kept ]
rm -r "$work/measured"
expect 2 'at least 1' "${measure[@]}" --count 0

mkdir "$work/bin"
ln -s "$NACRE_BIN/mkfs.nacre" "$work/bin"
printf '#!/bin/sh\necho it cannot be mounted\nexit 1\n' >"$work/bin/mount.nacre"
chmod +x "$work/bin/mount.nacre"
expect 1 'it cannot be mounted' "$tool" --bin "$work/bin" --work "$work/measured" "${few[@]}"
leaves_nothing "without a mount"

# --- Told to end in the midst of it.
"${measure[@]}" --rounds 100000 --count 5 --mib 1 --transports device >"$work/log" 2>&1 &
told=$!
for _ in $(seq 3000); do
  findmnt -rn -o TARGET | grep -qF "$work" && break
  sleep 0.05
done
check "it mounts: $(cat "$work/log")" kill -TERM "$told"
wait "$told"
check "it ends at once" [ $? = 143 ]
leaves_nothing "told to end"

verdict
