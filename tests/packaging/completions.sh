#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completions, as they are built from --help: real words completed by bash and, where they are there, by
# zsh and fish; and every command and option that --help lists is offered.
. "$(dirname "$0")/../tools/command_harness.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$work/completions
programs=(mkfs.nacre mount.nacre fsck.nacre nacre)
expect 0 '^$' "$root/packaging/write_completions.py" --bin "$NACRE_BIN" --out "$out" "${programs[@]}"
cd "$work"
mkdir -p folder\ one/below folder_two
touch file_one file_two.pem

for program in "${programs[@]}"; do
  . "$out/bash/$program" || failed "bash does not take $program"
done
# What bash offers when the cursor stands behind the last word, one a line. (That COMP_WORDBREAKS makes
# = a word of its own is for the caller to show.)
offers() {
  local function
  function=$(complete -p "$1" | sed 's/.*-F \(\S*\).*/\1/')
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "$function" "$1"
  printf '%s\n' "${COMPREPLY[@]}"
}
# completes EXPECTED WORD…: the words offered, sorted, joined by spaces.
completes() {
  local expected=$1 got
  shift
  got=$(offers "$@" | sort | paste -sd ' ')
  [ "$got" = "$expected" ] || failed "'$*' completes to '$got', expected '$expected'"
}
completes 'scrub stats sync' nacre s
completes 'rotate' nacre key ro
completes 'backup' nacre key b
completes '--cipher' nacre key rotate --ci
completes 'aes-192-cbc aes-192-ctr aes-192-gcm' nacre key rotate --cipher aes-192
completes 'zstd' mkfs.nacre --codec z
completes 'zstd' mkfs.nacre --codec = z
completes '--padding --passphrase-command --passphrase-fd --passphrase-file' mkfs.nacre --pa
completes 'folder one folder_two' mount.nacre f
completes 'file_one file_two.pem' fsck.nacre --identity fi
completes 'file_one file_two.pem' nacre key backup 'folder one' fi
completes '' mkfs.nacre --label f
completes 'auto cpu cuda' mount.nacre 'folder one' --engine ''
completes '' nacre no-such-command

# What is offered is what there is, of every command.
PYTHONPATH=$root/packaging python3 -B - "$NACRE_BIN" "${programs[@]}" >"$work/all" <<'END' || failed 'no tree'
import sys
import help_tree
for program in sys.argv[2:]:
    for one in help_tree.read_tree(sys.argv[1], program).every():
        flags = sorted(flag for option in one.options for flag in option.flags)
        print("\t".join([one.name(), " ".join(flags), " ".join(sorted(c.words[-1] for c in one.commands))]))
END
count=0
while IFS=$'\t' read -r name flags commands; do
  count=$((count + 1))
  got=$({ offers $name -; } | sort | paste -sd ' ')
  [ "$got" = "$(tr ' ' '\n' <<<"$flags" | LC_ALL=C.UTF-8 sort | paste -sd ' ')" ] ||
    failed "$name -: '$got', expected '$flags'"
  [ -z "$commands" ] || [ "$(offers $name '' | sort | paste -sd ' ')" = "$commands" ] ||
    failed "$name: '$(offers $name '')', expected '$commands'"
done <"$work/all"
check 'every command was looked at' [ "$count" -gt 20 ]

if command -v fish >/dev/null; then
  fish_completes() {
    local expected=$1 got
    got=$(fish --no-config -c "source $out/fish/${2%% *}.fish; complete -C '$2'" | cut -f 1 | sort | paste -sd ' ')
    [ "$got" = "$expected" ] || failed "fish: '$2' completes to '$got', expected '$expected'"
  }
  fish_completes 'scrub stats sync' 'nacre s'
  fish_completes 'backup' 'nacre key b'
  fish_completes '--cipher' 'nacre key rotate --ci'
  fish_completes 'zstd' 'mkfs.nacre --codec z'
  fish_completes 'folder one/ folder_two/' 'mount.nacre f'
else
  skip_part fish 'it is not installed'
fi
if command -v zsh >/dev/null; then
  for file in "$out"/zsh/_*; do
    expect 0 '^$' zsh -n "$file"
  done
  # zsh completes only at a prompt: one on a terminal of its own, which is typed at.
  cat >"$work/.zshrc" <<END
fpath=('$out/zsh' \$fpath)
autoload -Uz compinit && compinit -D -u
zstyle ':completion:*' list-colors ''
PS1='ready> '
unset zle_bracketed_paste
say() { print -r -- "<\$BUFFER>"; BUFFER=; }
zle -N say
bindkey '^X' say
END
  typed=$(PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/packaging/type_at_zsh.py" "$work" \
    'nacre key rot' 'mkfs.nacre --codec zs' 'nacre key rotate --ciph' 'nacre scr' 'fsck.nacre --salv')
  expected=$'nacre key rotate\nmkfs.nacre --codec zstd\nnacre key rotate --cipher\nnacre scrub\nfsck.nacre --salvage'
  [ "$typed" = "$expected" ] || failed "zsh completes to: $typed"
else
  skip_part zsh 'it is not installed'
fi
verdict
