#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/MOVING.md: its lines moving a gocryptfs volume, as they stand there, at a terminal where somebody types
# the passphrases.
. "$(dirname "$0")/../tools/command_harness.sh"
needs_mounts
root=$(cd "$(dirname "$0")/../.." && pwd)
for program in gocryptfs rsync fusermount3; do
  command -v "$program" >/dev/null || { echo "skipped: $test_name: there is no $program"; exit 77; }
done
pass='correct horse battery staple'
mkdir "$work/scratch" "$work/filled"
cd "$work/scratch"
mkdir old.gocryptfs
expect 0 '' gocryptfs -q -init -scryptn 10 -passfile "$work/passphrase" old.gocryptfs
expect 0 '' gocryptfs -q -passfile "$work/passphrase" old.gocryptfs "$work/filled"
mkdir -p "$work/filled/a folder/below"
printf 'text\n' >"$work/filled/a folder/a file"
head -c 300000 /dev/urandom >"$work/filled/a folder/below/noise"
ln "$work/filled/a folder/a file" "$work/filled/another name"
ln -s 'a folder/a file' "$work/filled/link"
chmod 640 "$work/filled/a folder/a file"
touch -d '2001-02-03 04:05:06.789' "$work/filled/a folder/below/noise"
state() { (cd "$1" && find . -printf '%P %y %m %n %s %T@ %l\n' | grep -v ' d ' | sort && find . -type f -exec sha256sum {} + | sort); }
state "$work/filled" >"$work/before"
expect 0 '' fusermount3 -u "$work/filled"

"$root/tests/packaging/fenced.py" "$root/docs/MOVING.md" sh 'From gocryptfs' >"$work/lines" || failed 'no lines'
# Without access control lists, which gocryptfs has only on some disks.
{ echo 'set -e'; sed -e 's/-aHAX/-aHX/' -e 's/  # prints nothing.*/ >differences/' "$work/lines"; echo 'echo ALL RAN'; } \
  >"$work/script"
got=0
timeout 600 python3 -B "$root/tests/tools/answer_prompts.py" "$pass" "$pass" "$pass" "$pass" "$pass" \
  -- bash "$work/script" >"$work/shown" 2>&1 || got=$?
check "ends with $got: $(tail -n 20 "$work/shown")" [ "$got" = 0 ]
check 'every line ran' grep -q 'ALL RAN' "$work/shown"
# The mount point is a directory of the scratch folder, as old as the move; all below it is the same.
check "rsync finds differences: $(cat differences)" [ -e differences -a ! -s differences ]
expect 0 '' mount.nacre "${secret[@]}" new.nacre new
state new >"$work/after"
check "files differ: $(diff "$work/before" "$work/after")" cmp -s "$work/before" "$work/after"
expect 0 '' nacre umount new
verdict
