#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/test.sh tells the truth: about tests that pass, fail, fail once, skip and hang, and about a
# run in which too much fails. It runs a project of such tests instead of this one's.
set -uo pipefail
unset NACRE_TEST_SECONDS # the bound of the run that this test is part of
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/nacre-test_runner.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
failures=0
failed() {
  echo "FAILED: line ${BASH_LINENO[1]}: $*"
  sed 's/^/  | /' "$work/said"
  failures=$((failures + 1))
}

mkdir -p "$work/tools" "$work/tests/support" "$work/build/dev"
cp "$root/tools/test.sh" "$work/tools"
cp "$root/tests/support/"{shake,watch_for_hangs}.sh "$work/tests/support"

# project LINES…: lines of CMake between the head and the tail of a project.
project() {
  rm -rf "$work/build/dev" "$work/state"
  mkdir -p "$work/build/dev" "$work/state"
  {
    printf '%s\n' 'cmake_minimum_required(VERSION 3.18)' 'project(toy NONE)' 'enable_testing()' \
      'function(test name)' '  add_test(NAME ${name} COMMAND bash -c "${ARGN}")' \
      '  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 60)' \
      'endfunction()' "$@"
  } >"$work/CMakeLists.txt"
  cmake -S "$work" -B "$work/build/dev" >"$work/said" 2>&1 || failed "cmake"
}
# run STATUS OPTION…
run() {
  local expected=$1 got=0
  shift
  timeout 600 "$work/tools/test.sh" --no-build "$@" >"$work/said" 2>&1 </dev/null || got=$?
  [ "$got" = "$expected" ] || failed "exit $got, expected $expected"
}
says() { grep -qE -- "$1" "$work/said" || failed "does not say '$1'"; }
says_not() { ! grep -qE -- "$1" "$work/said" || failed "says '$1'"; }
# The one summary of a run, as ctest would put it.
summary() {
  [ "$(grep -E 'tests passed, ' "$work/said")" = "$1" ] || failed "the summary is not '$1'"
}
good='test(good "exit 0")'
skips='test(skips "echo skipped: this part: no such thing here; exit 77")'
once="test(Some/Suite.fails_once/1 \"test -e $work/state/1 || { touch $work/state/1; echo oops; exit 1; }\")"
bad='test(bad "echo broken; exit 1")'

project "$good" "$skips"
run 0
summary '100% tests passed, 0 tests failed out of 2'
says '^  this part: no such thing here$'
says_not 'alone'

# What passes when it is alone is named, last but for the summary, and its words are kept.
project "$good" "$skips" "$once"
run 0
summary '100% tests passed, 0 tests failed out of 3'
says 'PASSED ONLY WHEN RUN ALONE: 1,'
says 'passed only when run alone: Some/Suite\.fails_once/1$'
says '^Failed: Some/Suite\.fails_once/1$'
says '^  oops$'
says_not 'The following tests FAILED'

# What fails twice fails, next to what did not.
project "$good" "$once" "$bad"
run 1
summary '66% tests passed, 1 tests failed out of 3'
says 'passed only when run alone: Some/Suite\.fails_once/1$'
says_not 'passed only when run alone: bad'
says '^Failed also when run alone: bad$'
says 'bad \(Failed\)$'
says_not 'fails_once/1 \(Failed\)'

# It runs alone: of two that fail when they meet, and have met, each passes.
meeting() { # NAME OTHER
  echo "test($1 \"cd $work/state; touch $1; test -e met || { until test -e $2; do sleep 0.1; done;" \
    "touch met-$1; until test -e met-$2; do sleep 0.1; done; rm $1; touch met; exit 1; };" \
    "sleep 1; test -e $2; s=\$?; rm $1; test \$s = 1\")"
}
project "$(meeting one two)" "$(meeting two one)"
run 0
says 'PASSED ONLY WHEN RUN ALONE: 2,'

# A test that hangs is ended and counts as failed; so does a program that is not there.
project "$good" 'test(hangs "exec sleep 1000")' 'set_tests_properties(hangs PROPERTIES TIMEOUT 2)' \
  "add_test(NAME lost COMMAND $work/nothing)"
run 1
summary '33% tests passed, 2 tests failed out of 3'
says 'hangs \(Timeout\)$'
says 'lost \(Not Run\)$'

# A run that goes past its bound names what still runs, ends it, and has failed.
endless="sleep $((1000000 + $$))"
project "$good" "test(endless \"exec $endless\")"
NACRE_TEST_SECONDS=3 run 1
says '^The tests did not end within 3 s'
says '^Still running after 3 s:$'
says "$endless\$"
! pgrep -f "^$endless" >/dev/null || failed "the test is still running"
# One that keeps its bound says nothing of it.
project "$good" "$once"
NACRE_TEST_SECONDS=600 run 0
says_not 'did not end|Still running'

# Where all is broken nothing is run again.
project "$good" 'foreach(n RANGE 1 21)' 'test(bad${n} "exit 1")' 'endforeach()'
run 1
summary '4% tests passed, 21 tests failed out of 22'
says '^21 tests failed, too many'

# One of many that fails makes no 100 %.
project 'foreach(n RANGE 1 250)' 'test(good${n} "exit 0")' 'endforeach()' "$bad"
run 1
summary '99% tests passed, 1 tests failed out of 251'

# A report of a sanitizer fails the whole, whatever the tests said.
project "$good" 'test(leaks "echo ERROR: leak >$(echo $ASAN_OPTIONS | sed s/log_path=// | sed s/:.*//).1")'
run 1
summary '100% tests passed, 0 tests failed out of 2'
says 'ERROR: leak'

# No test at all is no success; nor is an earlier failure of this build a later one's.
project "$good" "$bad"
run 1 --tests 'no such test'
run 1 --tests bad
run 0 --tests good
summary '100% tests passed, 0 tests failed out of 1'

# Shaken: each test so often, nothing twice because it failed, and no process left of what kept the
# cores busy.
project "$good" "$once" "$skips"
run 1 --shake 3
says '^ok     good: 3 passed, 0 failed'
says '^FAILED Some/Suite\.fails_once/1: 2 passed, 1 failed'
says '^  oops$|^oops$'
says '^3 tests, 9 runs, 1 failures$'
run 0 --shake 2 --pause 1 --tests good
says '^ok     good: 2 passed, 0 failed'
run 1 --shake 1 --tests 'no such test'
run 2 --shake 0
run 2 --pause 3
run 2 --tests
# A burner that was told to end needs a processor for that.
for _ in $(seq 600); do
  left=$(grep -lsz -- "^$work/build/dev/" /proc/[0-9]*/cmdline)
  [ -n "$left" ] || break
  sleep 0.1
done
[ -z "$left" ] || failed "processes are left: $left"

[ $failures = 0 ] || echo "$failures expectations failed"
exit $((failures > 0))
