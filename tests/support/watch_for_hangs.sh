#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# While PID lives: writes the stacks of each process whose program lies in FOLDER and that is older
# than SECONDS, once, to LOG. Made for tests, none of whose processes lives so long.
#
#   watch_for_hangs.sh PID FOLDER SECONDS LOG
#
# Threads' stacks need gdb; without it, only where each waits in the kernel is said.
set -euo pipefail
watched=$1 folder=$(realpath -- "$2") seconds=$3 log=$4

show() { # PID
  echo "process $1, $(ps -o etimes= -p "$1" | tr -d ' ') s old: $(tr '\0' ' ' <"/proc/$1/cmdline")"
  for task in "/proc/$1/task/"*; do
    echo "  thread ${task##*/} $(cat "$task/comm"): $(awk '$1 == "State:" {print $2}' "$task/status")," \
      "in $(cat "$task/wchan")"
  done
  command -v gdb >/dev/null || return 0
  timeout -k 5 60 gdb -p "$1" -batch -ex 'thread apply all backtrace 14' 2>/dev/null |
    sed -n '/^Thread/,$p'
}

# fuse_tests serves its own mounts. If it waits for itself, not even SIGKILL ends it, and a look at its
# memory waits, too. Aborting the connections of such mounts ends it; tests beside it fail once.
abort_own_mounts() {
  local control
  control=$(mktemp -d)
  mount -t fusectl none "$control" 2>/dev/null || { rmdir "$control"; return 0; }
  awk '$5 ~ /\/nacre-fuse-/ { split($3, device, ":"); print device[2] }' /proc/self/mountinfo |
    while read -r number; do
      [ ! -e "$control/$number/abort" ] || echo 1 >"$control/$number/abort"
    done
  umount "$control" && rmdir "$control"
}

declare -A seen=()
while kill -0 "$watched" 2>/dev/null; do
  for process in $(find /proc -maxdepth 2 -path '/proc/[0-9]*/exe' -lname "$folder/*" -printf '%h\n' 2>/dev/null); do
    pid=${process##*/}
    [ -z "${seen[$pid]-}" ] || continue
    age=$(ps -o etimes= -p "$pid") || continue
    [ "$age" -ge "$seconds" ] || continue
    seen[$pid]=1
    case $(readlink "$process/exe") in
      */fuse_tests)
        echo "process $pid hung: the connections of its kind were aborted" >>"$log"
        abort_own_mounts 2>/dev/null || true ;;
    esac
    show "$pid" >>"$log" 2>/dev/null || true
  done
  # A look costs as little as one process, and a hang lasts.
  sleep 10
done
