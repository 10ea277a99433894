#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, runs every test and says what was skipped and why.
#
#   test.sh [--preset P | --asan | --tsan] [--only LABEL] [--tests REGEX] [--long] [--suites DIR]
#           [--no-build] [--io-uring] [--shake N [--pause SECONDS]]
#
#   --preset P    a preset of CMakePresets.json; default dev. --asan and --tsan are short for theirs
#   --only LABEL  only unit, oracle, crash, model, golden, bad, mount, fuzz, gpu or tidy tests
#   --tests REGEX only tests whose names match
#   --long        the full counts of the seeded tests, not samples; ten minutes of libFuzzer each
#   --suites DIR  with --long, also the public POSIX suites built in DIR (see posix_suites.sh)
#   --no-build    use the existing programs; install and build nothing
#   --io-uring    also the tests that switch FUSE over io_uring on for the whole machine (docs/TESTS.md)
#   --shake N     run each test N times, while something else keeps every core busy
#   --pause S     with --shake: stop everything that a test runs for S seconds, again and again
#
# A test that fails is run once more, alone, when all others have ended. If it passes then, the run does
# not fail, but names the test at the end: it has a fault that must be found (docs/TESTS.md).
# NACRE_TEST_SECONDS bounds all this: what still runs then is named and ended, and the run has failed.
# The whole output stays in build/P/test-logs. Exit status: 0 all passed, 2 usage, 8 set-up or build
# failed, 1 a test failed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() { sed -n '5,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
preset=dev select=() builds=1 shake="" pause_s=0
while [ $# -gt 0 ]; do
  case $1 in
    --preset | --only | --tests | --suites | --shake | --pause)
      [ $# -ge 2 ] || usage
      case $1 in
        --preset) preset=$2 ;;
        --only) select+=(-L "^$2\$") ;;
        --tests) select+=(-R "$2") ;;
        --suites) NACRE_SUITES=$(realpath -- "$2") && export NACRE_SUITES ;;
        --shake) shake=$2 ;;
        --pause) pause_s=$2 ;;
      esac
      shift ;;
    --asan) preset=asan ;;
    --tsan) preset=tsan ;;
    --long) export NACRE_LONG=1 NACRE_FUZZ_SECONDS="${NACRE_FUZZ_SECONDS:-600}" ;;
    --no-build) builds= ;;
    --io-uring) export NACRE_IO_URING_TESTS=1 ;;
    *) usage ;;
  esac
  shift
done
[[ $shake =~ ^([1-9][0-9]*)?$ && $pause_s =~ ^[0-9]+$ ]] || usage
[[ ${NACRE_TEST_SECONDS-} =~ ^([1-9][0-9]*)?$ ]] || usage
[ -n "$shake" ] || [ "$pause_s" = 0 ] || usage

if [ -n "$builds" ]; then
  "$root/tools/install_dependencies.sh" --tests
  "$root/tools/build.sh" "$preset" -DNACRE_TESTS=ON "-DNACRE_LONG_TESTS=${NACRE_LONG:+ON}"
fi

build=$root/build/$preset
logs=$build/test-logs
log=$logs/$(date +%Y%m%d-%H%M%S).log
mkdir -p "$logs"

# Daemons lose their terminal, so sanitizers write to files; one file more is a failure.
reports=$logs/sanitizer
rm -f "$reports".*
chmod 1777 "$logs" # daemons of other users report here too
export ASAN_OPTIONS=log_path=$reports:detect_leaks=1
export UBSAN_OPTIONS=log_path=$reports:print_stacktrace=1
export LSAN_OPTIONS=suppressions=$root/tests/support/lsan.supp:print_suppressions=0
export TSAN_OPTIONS=log_path=$reports:suppressions=$root/tests/support/tsan.supp:history_size=7

# What hangs shows its stacks before ctest ends it: the run that meets it may be the only one.
stacks=${log%.log}.stacks.log
if [ -z "${NACRE_LONG-}" ]; then
  "$root/tests/support/watch_for_hangs.sh" $$ "$build" 600 "$stacks" >/dev/null 2>&1 &
  trap 'kill '$!' 2>/dev/null || true' EXIT
fi

status=0
tell_sanitizers_and_hangs() {
  local report
  if compgen -G "$reports.*" >/dev/null; then
    status=1
    echo
    echo "Sanitizer reports:"
    for report in "$reports".*; do
      echo "  $report: $(grep -m1 -E 'ERROR|WARNING|runtime error' "$report" || head -n 1 "$report")"
    done
  fi
  if [ -s "$stacks" ]; then
    echo
    echo "Hung:"
    cut -c 1-200 "$stacks" | head -n 150
  fi
  if [ -s "${late-}" ]; then
    status=1
    echo
    echo "Still running after $NACRE_TEST_SECONDS s:"
    head -n 60 "$late"
  fi
}

# Twice as many tests as there are cores: many wait for a daemon or a disk. Some take a gigabyte.
NACRE_TEST_JOBS=$(awk '$1 == "MemTotal:" {print int($2 / 1024 / 1024)}' /proc/meminfo)
[ "$NACRE_TEST_JOBS" -le $(($(nproc) * 2)) ] || NACRE_TEST_JOBS=$(($(nproc) * 2))
[ "$NACRE_TEST_JOBS" -ge 1 ] || NACRE_TEST_JOBS=1
export NACRE_TEST_JOBS

if [ -n "$shake" ]; then
  "$root/tests/support/shake.sh" "$build" "$shake" "$pause_s" "$log" ${select[@]+"${select[@]}"} ||
    status=1
  tell_sanitizers_and_hangs
  exit $status
fi

# The seconds that are left of NACRE_TEST_SECONDS; 0 if there is no bound.
seconds_left() {
  local left=0
  [ -z "${NACRE_TEST_SECONDS-}" ] || left=$((NACRE_TEST_SECONDS > SECONDS ? NACRE_TEST_SECONDS - SECONDS : 1))
  echo "$left"
}

# Writes to FILE what still runs after SECONDS, and where each process waits in the kernel. ctest would
# not say. The call ends when its sleep is ended.
note_late() { # SECONDS FILE
  sleep "$1" || return 0
  ps -eo pid,ppid,etimes,stat,wchan:24,args --sort=etimes | cut -c 1-200 >"$2"
}

# run_tests LOG CTEST_OPTION…: a line a test, as wide as its name. The summary is kept for LOG, since
# it may not be the last word; so is the whole output of every test, in LOG's .full.log.
late=${log%.log}.late.log
run_tests() {
  local log=$1 code=0 left noting='' bounded=()
  shift
  rm -f "$build/Testing/Temporary/LastTest.log"
  left=$(seconds_left)
  if [ "$left" != 0 ]; then
    note_late "$left" "$late" </dev/null >/dev/null 2>&1 &
    noting=$!
    # In a process group of its own, which timeout ends as a whole; Control-C would not reach it.
    bounded=(timeout --kill-after=30 $((left + 10)))
  fi
  (cd "$build" && ${bounded[@]+"${bounded[@]}"} ctest --output-on-failure --no-tests=error "$@") 2>&1 |
    sed -u -E -e '/^ +Start +[0-9]+: /d' -e 's/^( *[0-9]+\/[0-9]+ Test .*[^.]) ?\.{3,} */\1 /' |
    tee "$log" | sed -u '/^[0-9]*% tests passed/,$d' || code=1
  if [ -n "$noting" ]; then
    pkill -P "$noting" 2>/dev/null || true
    wait "$noting" 2>/dev/null || true
  fi
  cp "$build/Testing/Temporary/LastTest.log" "${log%.log}.full.log" 2>/dev/null ||
    : >"${log%.log}.full.log"
  return $code
}

# More failures than this are not a matter of luck.
retried_max=20
alone=${log%.log}.alone.log
failed=${log%.log}.failed lucky=${log%.log}.lucky # NUMBER:NAME a line
: >"$failed"
: >"$lucky"
rm -f "$build/Testing/Temporary/LastTestsFailed.log"
run_tests "$log" -j "$NACRE_TEST_JOBS" ${select[@]+"${select[@]}"} || status=1
[ ! -e "$build/Testing/Temporary/LastTestsFailed.log" ] ||
  LC_ALL=C sort -t : -k 1,1 "$build/Testing/Temporary/LastTestsFailed.log" >"$failed"
failed_count=$(wc -l <"$failed")
if [ -s "$late" ]; then
  echo
  echo "The tests did not end within $NACRE_TEST_SECONDS s: nothing is run once more."
elif [ "$failed_count" -gt "$retried_max" ]; then
  echo
  echo "$failed_count tests failed, too many to run each of them once more, alone."
elif [ "$failed_count" -gt 0 ]; then
  echo
  echo "Once more, each alone:"
  # Half an hour for all of them, even if each hangs again.
  limit=()
  [ -n "${NACRE_LONG-}" ] || limit=(--stop-time "$(date -d '+30 minutes' +%H:%M:%S)")
  run_tests "$alone" --rerun-failed -j 1 ${limit[@]+"${limit[@]}"} || true
  sed -n -E 's/^ *[0-9]+\/[0-9]+ Test +#([0-9]+): .* Passed +[0-9.]+ sec.*/\1/p' "$alone" |
    LC_ALL=C sort >"$lucky.numbers"
  LC_ALL=C join -t : "$failed" "$lucky.numbers" >"$lucky"
  LC_ALL=C join -t : -v 1 "$failed" "$lucky.numbers" >"$failed.still"
  mv "$failed.still" "$failed"
  [ -s "$failed" ] || status=0
fi
whole=("${log%.log}.full.log")
[ ! -e "${alone%.log}.full.log" ] || whole+=("${alone%.log}.full.log")

echo
echo "Skipped, and why:"
# Scripts print "skipped: WHAT: WHY"; GoogleTest prints "FILE:LINE: Skipped", the reason, the name.
awk '
  /^skipped: / { print "  " substr($0, 10); any = 1 }
  /: Skipped$/ { reason = ""; reading = 1; next }
  reading && /\[  SKIPPED \]/ { print "  " $4 ": " reason; any = 1; reading = 0 }
  reading && /^\[/ { next } # what a daemon logs, and GoogleTest says
  reading && NF { reason = reason (reason == "" ? "" : " ") $0 }
  END { if (!any) print "  nothing" }
' "${whole[0]}" | sort -u
[ -n "${NACRE_LONG-}" ] || echo "  full counts of seeded tests: only samples ran; --long runs all"

tell_sanitizers_and_hangs

# Again, for a reader who has only the end of all this.
awk '
  /^[0-9]+\/[0-9]+ Test: / { name = $3; count = 0 }
  { line[count++] = substr($0, 1, 300) }
  /^Test Failed\.$/ {
    print "\nFailed" (FILENAME ~ /\.alone\.full\.log$/ ? " also when run alone: " : ": ") name
    for (i = count > 40 ? count - 40 : 0; i < count; i++) print "  " line[i]
  }
' "${whole[@]}"

echo
echo "Logs: $log ${whole[*]}"
if [ -s "$lucky" ]; then
  echo
  echo "*** PASSED ONLY WHEN RUN ALONE: $(wc -l <"$lucky"), each a fault to be found (docs/TESTS.md):"
  sed -E 's/^[0-9]+:/***   passed only when run alone: /' "$lucky"
fi
echo
# The summary of the first run, with what the second one changed.
awk -v lucky="$lucky" -v failed="$failed" '
  function numbers_of(file, list,    part, line) {
    while ((getline line < file) > 0) { split(line, part, ":"); list[part[1]] = 1 }
  }
  BEGIN { numbers_of(lucky, passes_now); numbers_of(failed, fails) }
  /^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+/ {
    summary = 1
    total = $NF
    fail_count = 0
    for (number in fails) ++fail_count
    percent = int((total - fail_count) * 100 / total)
    printf "%d%% tests passed, %d tests failed out of %d\n", percent, fail_count, total
    next
  }
  !summary { next }
  /^The following tests FAILED:/ { listing = 1; if (fail_count == 0) next }
  /^Errors while running CTest/ && fail_count == 0 { next }
  listing && /^\t *[0-9]+ - / && ($1 in passes_now) { next }
  { print }
  END { if (!summary) print "ctest ended without a summary" }
' "$log"
exit $status
