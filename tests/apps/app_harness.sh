# SPDX-License-Identifier: Apache-2.0
# For tests with real programs; sourced by bash instead of mount_harness.sh, which it builds on.
#
#   . tests/apps/app_harness.sh
#   needs git              the programs; without one the test is skipped
#   start_volume           made and mounted, with what mount_options says
#   both STEP              the function STEP in $app, a directory in the mount, and in $plain, one that
#                          is not: what it prints must be the same
#   again STEP             a new mount, then STEP in both once more, which now only looks
#   serve NAME COMMAND…    a server of the test's own, in $work/NAME.log; ends with the test
#   finish
#
# counts SHORT LONG says how much there is to do: LONG where NACRE_LONG is set.
. "$(dirname "${BASH_SOURCE[0]}")/../support/mount_harness.sh"
app=$mnt/app plain=$work/plain
mkdir "$plain"
mount_options=() # for each mount
ready_keys=${LD_PRELOAD-}
unset LD_PRELOAD # for mkfs.nacre, not for the programs
start_volume() {
  LD_PRELOAD=$ready_keys make_volume
  mount_volume "${mount_options[@]}"
  mkdir -p "$app"
}

needs() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || skip "there is no $program"
  done
}
counts() { if [ -n "${NACRE_LONG-}" ]; then echo "$2"; else echo "$1"; fi; }
# tell PROGRAM…: the version that ran, as the test's log and docs/APPS.md have it.
tell() {
  local package
  for package in "$@"; do
    echo "ran: $package $(dpkg-query -W -f='${Version}' "$package" 2>/dev/null || echo of no package)"
  done
}

# within FOLDER LOG STEP: every command of the step counts, which it would not behind || or in an if.
within() {
  local folder=$1 log=$2 status
  shift 2
  set +e
  (
    set -e
    cd "$folder"
    "$@"
  ) >"$log" 2>&1
  status=$?
  set -e
  [ $status = 0 ] || fail "$*, in $folder: $(tail -n 5 "$log")"
}
both() {
  within "$plain" "$work/said.plain" "$@"
  within "$app" "$work/said.mount" "$@"
  [ -s "$work/said.mount" ] || fail "$*: says nothing that could be compared"
  diff "$work/said.plain" "$work/said.mount" >"$work/said.diff" ||
    fail "$*: not what it says in a plain directory (<): $(head -n 12 "$work/said.diff" | cut -c 1-200)"
}
again() {
  remount "${mount_options[@]}"
  both "$@"
}

# The daemon dies, as in a crash, and the volume is mounted anew.
kill_daemon() {
  kill -9 $(daemons_of "$volume")
  wait_for_daemon "$volume"
  detach "$mnt"
  mount_volume "${mount_options[@]}"
}

# Also of a step, which is a shell of its own, and which may end before its server.
servers=()
serve() {
  local log=$work/$1.log
  shift
  setsid "$@" >"$log" 2>&1 </dev/null &
  servers+=($!)
  echo $! >>"$work/servers"
}
# Whole process groups: servers have children.
end_servers() {
  local server signal
  [ ${#servers[@]} -gt 0 ] || return 0
  for signal in TERM KILL; do
    for server in "${servers[@]}"; do kill -$signal -- "-$server" 2>/dev/null || :; done
    for _ in $(seq 100); do
      pgrep -g "$(IFS=, && echo "${servers[*]}")" >/dev/null || break 2
      sleep 0.1
    done
  done
  wait "${servers[@]}" 2>/dev/null || :
  for server in "${servers[@]}"; do sed -i "/^$server\$/d" "$work/servers"; done
  servers=()
}
# What a server says when it is ready: until_true COMMAND…
until_true() {
  for _ in $(seq 3000); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  fail "not within five minutes: $*"
}
as() { # USER COMMAND…
  local user=$1
  shift
  setpriv --reuid "$user" --regid "$user" --init-groups env HOME=/nonexistent "$@"
}
app_cleanup() {
  local status=$?
  trap - ERR
  set +e
  servers=($(cat "$work/servers" 2>/dev/null))
  end_servers
  (exit $status)
  cleanup
}
trap app_cleanup EXIT
