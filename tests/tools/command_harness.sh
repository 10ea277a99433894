# SPDX-License-Identifier: Apache-2.0
# For tests of the commands' exit codes and words; sourced by bash. A private folder, with a home of
# its own, that goes when the test ends.
#
#   expect CODE WORDS COMMAND…   runs the command without a terminal; its exit code must be CODE, and
#                                its output must match the extended regular expression WORDS;
#                                '^$' stands for no output at all, but for what only a slow machine
#                                says: that a wait has lasted some seconds (silent_disk.sh has its test)
#
# Several expectations may fail; verdict at the end says so.
set -uo pipefail
export LC_ALL=C.UTF-8

: "${NACRE_BIN:?NACRE_BIN must name the folder that holds mkfs.nacre}"
NACRE_BIN=$(realpath "$NACRE_BIN")
PATH=$NACRE_BIN:$PATH
test_name=$(basename "$0" .sh)
work=$(mktemp -d "${TMPDIR:-/tmp}/nacre-$test_name.XXXXXX")
chmod 755 "$work"
export HOME=$work/home
mkdir "$HOME"
: >"$HOME/.profile" # an empty home stays empty (own_files.h)
unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME XDG_CACHE_HOME
known=$HOME/.config/nacre/known_volumes
printf 'correct horse battery staple\n' >"$work/passphrase"
printf 'something else\n' >"$work/wrong"
secret=(--passphrase-file "$work/passphrase")
cheap=(--kdf-memory 8192 --kdf-time 1)
if [ -n "${NACRE_READY_KEYS-}" ]; then # see ready_keys.cpp
  export NACRE_READY_KEYS_TAKEN=$work/keys_taken LD_PRELOAD=$NACRE_BIN/libready_keys.so
fi
failures=0

clean_up() {
  local target
  cd /
  findmnt -rn -o TARGET | grep -F "$work" | sort -r | while read -r target; do
    printf -v target '%b' "$target" # findmnt writes \x20 for a space
    umount -l "$target" 2>/dev/null || fusermount3 -uz "$target"
  done
  wait_for_daemons || kill -9 $(daemons)
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# How far volumes had come: for a test that puts older states in their place.
forget_states() { rm -rf "$HOME/.config/nacre/seen"; }

# Daemons that were started on anything in the folder.
daemons() {
  local process words
  for process in /proc/[0-9]*; do
    mapfile -d '' words 2>/dev/null <"$process/cmdline" || continue
    case ${words[0]-} in *mount.nacre) ;; *) continue ;; esac
    case "${words[*]}" in *"$work"*) echo "${process#/proc/}" ;; esac
  done
}
# Until none is left: a killed one may hold the volume a moment longer.
wait_for_daemons() {
  for _ in $(seq 3000); do
    [ -n "$(daemons)" ] || return 0
    sleep 0.1
  done
  return 1
}
is_root() { [ "$(id -u)" = 0 ]; }
# For a script that mounts: skips it where it cannot, and gives a user a place for sockets.
needs_mounts() {
  [ -e /dev/fuse ] || { echo "skipped: $test_name: there is no /dev/fuse"; exit 77; }
  is_root || command -v fusermount3 >/dev/null || {
    echo "skipped: $test_name: there is no fusermount3"
    exit 77
  }
  if ! is_root; then
    export XDG_RUNTIME_DIR=$work/run
    mkdir -m 700 "$XDG_RUNTIME_DIR"
  fi
}
skip_part() { echo "skipped: $test_name, $1: $2"; }
failed() {
  echo "FAILED: line ${BASH_LINENO[1]}: $*"
  failures=$((failures + 1))
}
expect() {
  local code=$1 words=$2 got=0 output
  shift 2
  output=$(timeout 600 "$@" </dev/null 2>&1) || got=$?
  [ "$words" != '^$' ] || output=$(grep -vE '^nacre: .*; for ([5-9]|[0-9]{2,}) s now$' <<<"$output")
  if [ "$got" != "$code" ]; then
    failed "exit $got, expected $code: $* :: $output"
  elif [ "$words" = '^$' ] && [ -n "$output" ]; then
    failed "expected to say nothing: $* :: $output"
  elif [ "$words" != '^$' ] && ! grep -qEz -- "$words" <<<"$output"; then
    failed "the words '$words' are missing: $* :: $output"
  elif grep -qE 'terminate called|Assertion|Sanitizer|std::' <<<"$output"; then
    failed "not meant for users: $* :: $output"
  fi
}
check() {
  local what=$1
  shift
  "$@" || failed "$what"
}
make_volume() { mkfs.nacre "${secret[@]}" "${cheap[@]}" "$@" >"$work/mkfs.log" 2>&1 || failed "mkfs.nacre: $(cat "$work/mkfs.log")"; }
# cheap_programs FOLDER: the programs, whose mkfs.nacre asks the least of a passphrase: for scripts that
# call it with no options of their own.
cheap_programs() {
  mkdir "$1"
  ln -s "$NACRE_BIN"/{nacre,mount.nacre,fsck.nacre} "$1"
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$NACRE_BIN/mkfs.nacre" "${cheap[*]}" >"$1/mkfs.nacre"
  chmod +x "$1/mkfs.nacre"
}
verdict() {
  [ $failures = 0 ] || echo "$failures expectations failed"
  exit $((failures > 0))
}
