#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs that are started without some of the standard streams, as daemons and cron jobs start them:
# they return, do their work, and none of their files gets a number of a standard stream.
. "$(dirname "$0")/command_harness.sh"
needs_mounts
v=$work/vault m=$work/private
mkdir "$m"
closings=('<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-')
# without CLOSED CODE COMMAND…: a status of 124 is a program that does not return.
without() {
  local closed=$1 wanted=$2 got=0
  shift 2
  eval "timeout 300 \"\$@\" $closed" >"$work/said" 2>&1 || got=$?
  [ $got = "$wanted" ] || failed "'$*' with $closed ended with $got, not $wanted: $(cat "$work/said")"
}
printf 'to be sealed\n' >"$work/plain"

for closed in "${closings[@]}"; do
  rm -rf "$v" "$HOME/.config"
  without "$closed" 0 mkfs.nacre "${secret[@]}" "${cheap[@]}" "$v"
  # A shell of its own: the passphrase command finds its streams, too.
  without "$closed" 0 mount.nacre --passphrase-command "cat $work/passphrase" --log-file "$work/log" "$v" "$m"
  if mountpoint -q "$m"; then
    cp "$work/plain" "$m/a"
    for descriptor in /proc/$(daemons)/fd/{0,1,2}; do
      ! is_root || [ "$(readlink "$descriptor")" = /dev/null ] ||
        failed "with $closed $descriptor of the daemon is $(readlink "$descriptor")"
    done
    without "$closed" 0 nacre sync "$m"
    without "$closed" 0 nacre trim "$m"
    without "$closed" 0 nacre umount "$m"
  fi
  without "$closed" 0 nacre key add "$v" --recovery "${secret[@]}"
  without "$closed" 0 nacre key rotate "$v" "${secret[@]}"
  # A report that nobody can get is no success.
  case " $closed" in *" >&-"*) report=8 ;; *) report=0 ;; esac
  without "$closed" $report fsck.nacre --deep "${secret[@]}" "$v"
  rm -rf "$work/copy" "$work/out"
  without "$closed" 0 nacre backup "$v" "$work/copy"
  without "$closed" 0 nacre crypt encrypt "${secret[@]}" "${cheap[@]}" -f "$work/plain"
  without "$closed" 0 nacre crypt decrypt "${secret[@]}" -C "$work/out" "$work/plain.ncr"
  cmp -s "$work/plain" "$work/out/plain" || failed "with $closed a sealed file comes back otherwise"
done
# What is closed stays closed to who asks for it: no other file is read in its place.
without '<&-' 8 mount.nacre --passphrase-fd 0 "$v" "$m"
grep -q 'descriptor 0: Bad file descriptor' "$work/said" || failed "closed input: $(cat "$work/said")"
expect 0 '' fsck.nacre --deep "${secret[@]}" "$v"
verdict
