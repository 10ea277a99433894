#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, runs every test and says what was skipped and why.
#
#   test.sh [--preset P | --asan | --tsan] [--only LABEL] [--tests REGEX] [--long] [--suites DIR]
#
#   --preset P    a preset of CMakePresets.json; default dev. --asan and --tsan are short for theirs
#   --only LABEL  only unit, oracle, crash, model, golden, bad, mount, fuzz, gpu or tidy tests
#   --tests REGEX only tests whose names match
#   --long        the full counts of the seeded tests, not samples; ten minutes of libFuzzer each
#   --suites DIR  with --long, also the public POSIX suites built in DIR (see posix_suites.sh)
#
# The whole output stays in build/P/test-logs. Exit status: 0 all passed, 2 usage, 8 set-up or build
# failed, 1 a test failed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() { sed -n '5,16s/^# \{0,1\}//p' "$0" >&2; exit 2; }
preset=dev select=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset | --only | --tests | --suites)
      [ $# -ge 2 ] || usage
      case $1 in
        --preset) preset=$2 ;;
        --only) select+=(-L "^$2\$") ;;
        --tests) select+=(-R "$2") ;;
        --suites) NACRE_SUITES=$(realpath -- "$2") && export NACRE_SUITES ;;
      esac
      shift ;;
    --asan) preset=asan ;;
    --tsan) preset=tsan ;;
    --long) export NACRE_LONG=1 NACRE_FUZZ_SECONDS="${NACRE_FUZZ_SECONDS:-600}" ;;
    *) usage ;;
  esac
  shift
done

"$root/tools/install_dependencies.sh" --tests
"$root/tools/build.sh" "$preset" -DNACRE_TESTS=ON "-DNACRE_LONG_TESTS=${NACRE_LONG:+ON}"

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
[ -n "${NACRE_LONG-}" ] || "$root/tests/support/watch_for_hangs.sh" $$ "$build" 600 "$stacks" &

status=0
# One test more than there are cores: many wait for a daemon or a disk.
jobs=$(($(nproc) + 1))
# A line a test, as wide as its name.
(cd "$build" && ctest --output-on-failure --no-tests=error -j "$jobs" "${select[@]}") 2>&1 |
  sed -u -E -e '/^ +Start +[0-9]+: /d' -e 's/^( *[0-9]+\/[0-9]+ Test .*[^.]) ?\.{3,} */\1 /' |
  tee "$log" || status=1
whole=${log%.log}.full.log
cp "$build/Testing/Temporary/LastTest.log" "$whole" 2>/dev/null || : >"$whole"

echo
echo "Skipped, and why:"
# Scripts print "skipped: WHAT: WHY"; GoogleTest prints "FILE:LINE: Skipped", the reason, the name.
awk '
  /^skipped: / { print "  " substr($0, 10); any = 1 }
  /: Skipped$/ { reason = ""; reading = 1; next }
  reading && /\[  SKIPPED \]/ { print "  " $4 ": " reason; any = 1; reading = 0 }
  reading && NF { reason = reason (reason == "" ? "" : " ") $0 }
  END { if (!any) print "  nothing" }
' "$whole" | sort -u
[ -n "${NACRE_LONG-}" ] || echo "  full counts of seeded tests: only samples ran; --long runs all"

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

# Again, where who sees only the end of all this finds it.
awk '
  /^[0-9]+\/[0-9]+ Test: / { name = $3; count = 0 }
  { line[count++] = substr($0, 1, 300) }
  /^Test Failed\.$/ {
    print "\nFailed: " name
    for (i = count > 40 ? count - 40 : 0; i < count; i++) print "  " line[i]
  }
' "$whole"

echo
echo "Logs: $log $whole"
sed -n '/^[0-9]*% tests passed/,$p' "$log"
exit $status
