#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands of README.md. The five that make an encrypted folder, and the two minutes that follow
# them, run as they stand there, at a terminal where a program types the passphrase. Then come those
# that the text names, in the same folder.
. "$(dirname "$0")/../tools/command_harness.sh"
needs_mounts
root=$(cd "$(dirname "$0")/../.." && pwd)
{
  "$root/tests/packaging/fenced.py" "$root/README.md" sh Nacre
  "$root/tests/packaging/fenced.py" "$root/README.md" sh 'Two minutes more, after the five commands'
} >"$work/tour" || failed 'no tour'
check 'five commands make an encrypted folder' \
  [ "$("$root/tests/packaging/fenced.py" "$root/README.md" sh Nacre | wc -l)" = 5 ]

# What the text names. `nacre web` has tests of its own in tests/web.
cat >"$work/named" <<'END'
fsck.nacre --repair
fsck.nacre --scrub
mount.nacre --witness FILE
mount.nacre vault private
nacre key add vault --recovery
nacre key remove --revoke
nacre lock
nacre sync
nacre web
END
tr '\n' ' ' <"$root/README.md" | sed 's/```/\n/g' | sed -n 'p;n' | grep -oE '`[^`]+`' | tr -d '`' | tr -s ' ' |
  grep -E '^(nacre|[a-z]+\.nacre) ' | sort -u >"$work/in_the_text"
check "README.md names other commands than this test runs: $(diff "$work/named" "$work/in_the_text")" \
  cmp -s "$work/named" "$work/in_the_text"

{
  echo 'set -e'
  # What is run, and that the line ended well: with pipefail off a pipe is its last command's.
  while IFS= read -r line; do
    printf 'echo %q\n%s\n' "RUN ${line%%  *}" "$line"
  done <"$work/tour"
  cat <<'END'
echo ALL RAN
nacre key add vault --recovery
: >witness
mount.nacre --witness witness vault private
nacre lock private
! ls private
nacre unlock private
ls private
nacre umount private
[ -s witness ]
fsck.nacre --scrub vault
fsck.nacre --deep vault
fsck.nacre --repair vault
nacre key remove --revoke vault 'recovery key'
[ "$(nacre key list vault | grep -c '^passphrase')" = 1 ]
echo ALL NAMED RAN
END
} >"$work/script"
mkdir "$work/scratch"
cd "$work/scratch"
pass='correct horse battery staple'
passes=()
for _ in $(seq 13); do passes+=("$pass"); done
got=0
timeout 600 python3 -B "$root/tests/tools/answer_prompts.py" "${passes[@]}" \
  -- bash "$work/script" >"$work/shown" 2>&1 || got=$?
check "the tour ends with $got: $(tail -n 20 "$work/shown")" [ "$got" = 0 ]
check 'every line ran' grep -q 'ALL RAN' "$work/shown"
check 'every named command ran' grep -q 'ALL NAMED RAN' "$work/shown"
check 'every line was looked at' [ "$(grep -c '^RUN' "$work/shown")" = "$(wc -l <"$work/tour")" ]
# What the comments promise.
check 'grep finds a file' grep -q '^private/common-licenses/Apache-2.0' "$work/shown"
check 'private is empty again' rmdir private
check 'the backup is a volume' [ -e vault.backup/superblock ]
check 'nothing is left mounted' bash -c "! findmnt -rn -o TARGET | grep -qF '$work'"
check 'no name shows in the volume' bash -c "! find vault vault.backup | grep -q licenses"
check 'nor any text' bash -c "! grep -rqaF 'GNU GENERAL PUBLIC LICENSE' vault vault.backup"
asked=$(sed '/ALL RAN/q' "$work/shown" | grep -c 'assphrase.*: ')
check "the tour asks for a passphrase five times, not $asked" [ "$asked" = 5 ]
verdict
