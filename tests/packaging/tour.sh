#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tour of README.md, line by line as it stands there, at a terminal where somebody types the passphrase.
. "$(dirname "$0")/../tools/command_harness.sh"
needs_mounts
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tests/packaging/fenced.py" "$root/README.md" sh 'Two minutes' >"$work/tour" || failed 'no tour'
{
  echo 'set -e'
  # What is run, and that the line ended well: with pipefail off a pipe is its last command's.
  while IFS= read -r line; do
    printf 'echo %q\n%s\n' "RUN ${line%%  *}" "$line"
  done <"$work/tour"
  echo 'echo ALL RAN'
} >"$work/script"
mkdir "$work/scratch"
cd "$work/scratch"
pass='correct horse battery staple'
got=0
timeout 600 python3 -B "$root/tests/tools/answer_prompts.py" "$pass" "$pass" "$pass" "$pass" "$pass" \
  -- bash "$work/script" >"$work/shown" 2>&1 || got=$?
check "the tour ends with $got: $(tail -n 20 "$work/shown")" [ "$got" = 0 ]
check 'every line ran' grep -q 'ALL RAN' "$work/shown"
check 'every line was looked at' [ "$(grep -c '^RUN' "$work/shown")" = "$(wc -l <"$work/tour")" ]
# What the comments promise.
check 'grep finds a file' grep -q '^private/common-licenses/Apache-2.0' "$work/shown"
check 'there is one passphrase' grep -q 'passphrase' "$work/shown"
check 'the backup is a volume' [ -e vault.backup/superblock ]
check 'nothing is left mounted' bash -c "! findmnt -rn -o TARGET | grep -qF '$work'"
check 'no name shows in the volume' bash -c "! find vault vault.backup | grep -q licenses"
check 'nor any text' bash -c "! grep -rqaF 'GNU GENERAL PUBLIC LICENSE' vault vault.backup"
asked=$(grep -c 'assphrase.*: ' "$work/shown")
check "it asks for a passphrase five times or fewer, not $asked" [ "$asked" -ge 3 ]
verdict
