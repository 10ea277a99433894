#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of a build again and again while something else keeps every core busy, and counts for
# each test how often it passed. What fails here depends on how fast the machine is, or loses a race.
#
#   shake.sh BUILD ROUNDS PAUSE_SECONDS LOG [CTEST_OPTION…]
#
# A round is one run of ctest: with as many jobs as the gate has, so that chosen tests meet one another.
# With PAUSE_SECONDS above 0 all processes of the tests are stopped for so long, over and over, at
# moments that nobody chose: a machine that stands still. What a failed test said is in LOG.
# NACRE_BURNERS is how many processes keep cores busy, where something else does so already: default is
# one a core.
# Exit status: 0 all passed, 1 a test failed or none ran.
set -euo pipefail
build=$(realpath -- "$1") rounds=$2 pause_s=$3 log=$4
shift 4

# Daemons inherit it, too: the processes that a pause stops.
export NACRE_SHAKEN=$$
helpers=()

# Processes of the tests, and not of the shaking. A process of another user hides its environment
# from all but root.
shaken() {
  grep -lsz "^NACRE_SHAKEN=$$\$" /proc/[0-9]*/environ | cut -d / -f 3 | while read -r pid; do
    case $(cat "/proc/$pid/comm" 2>/dev/null) in ctest | '') ;; *) echo "$pid" ;; esac
  done
}
# What was forked meanwhile is found by the second look.
stop_all() {
  local look
  for look in 1 2 3; do kill -STOP $(shaken) 2>/dev/null || true; done
}
continue_all() { kill -CONT $(shaken) 2>/dev/null || true; }

clean_up() {
  trap - EXIT
  # When this process is killed instead, they see that it is gone and end by themselves.
  [ ${#helpers[@]} = 0 ] || kill "${helpers[@]}" 2>/dev/null || true
  wait
  [ "$pause_s" = 0 ] || continue_all
}
trap clean_up EXIT
trap 'exit 130' INT TERM

for _ in $(seq "${NACRE_BURNERS:-$(nproc)}"); do
  env -u NACRE_SHAKEN bash -c '
    while kill -0 "$1" 2>/dev/null; do for ((i = 0; i < 200000; ++i)); do :; done; done' burner $$ "$log" &
  helpers+=($!)
done
if [ "$pause_s" != 0 ]; then
  (
    unset NACRE_SHAKEN
    trap - EXIT INT TERM
    while kill -0 $$ 2>/dev/null; do
      sleep "$((RANDOM % 8)).$((RANDOM % 10))"
      stop_all
      sleep "$pause_s"
      continue_all
    done
  ) &
  helpers+=($!)
fi

jobs=${NACRE_TEST_JOBS:-$(($(nproc) * 2))}
results=$log.results
: >"$log"
: >"$results"
for round in $(seq "$rounds"); do
  echo "=== round $round of $rounds" >>"$log"
  # Lines as of "1/6 Test #12: Name ....   Passed    0.01 sec" become "Passed 0.01 Name".
  (cd "$build" && ctest --output-on-failure --no-tests=error -j "$jobs" "$@") 2>&1 |
    tee -a "$log" |
    sed -n -u -E 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^. ])[ .]*(Passed|\*\*\*[A-Z][A-Za-z ]*[a-z]) +([0-9.]+) sec.*/\2 \3 \1/p' |
    tr -d '*' >>"$results" || true
  awk -v round="$round" -v rounds="$rounds" '
    $1 != "Passed" && $1 != "Skipped" { ++failed }
    END { printf "round %d of %d: %d failures in %d runs\n", round, rounds, failed, NR }' "$results"
done

echo
awk '
  { name = $0; sub(/^(Not Run|[A-Za-z]+) +[0-9.]+ /, "", name); time = $1 == "Not" ? $3 : $2
    if (!(name in runs)) { order[++count] = name; least[name] = time; most[name] = time }
    ++runs[name]
    if (time < least[name]) least[name] = time
    if (time > most[name]) most[name] = time
    if ($1 == "Passed") ++passed[name]; else if ($1 == "Skipped") ++skipped[name]; else { ++failed[name]; ++failures } }
  END {
    for (i = 1; i <= count; i++) {
      name = order[i]
      printf "%s %s: %d passed, %d failed%s, %.1f to %.1f s\n", failed[name] ? "FAILED" : "ok    ", name,
        passed[name], failed[name], skipped[name] ? ", " skipped[name] " skipped" : "", least[name], most[name]
    }
    printf "%d tests, %d runs, %d failures\n", count, NR, failures
    exit NR == 0 || failures > 0
  }' "$results" || {
  echo "What failed said, in $log:"
  grep -A 40 -E '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log" | head -n 200
  exit 1
}
