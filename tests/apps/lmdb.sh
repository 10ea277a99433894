#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LMDB, which maps its file and commits by two pages in turn, with and without writing through the
# mapping: what it was told to be durable is there after its own death and after the daemon's.
. "$(dirname "$0")/app_harness.sh"
# The system's Python has Debian's packages; another one may stand before it.
for python in python3 /usr/bin/python3; do "$python" -c 'import lmdb' 2>/dev/null && break; done
"$python" -c 'import lmdb' 2>/dev/null || skip "there is no python3-lmdb"
worker=$source_root/tests/apps/lmdb_work.py
transactions=$(counts 60 1500) kills=$(counts 1 8)

checked() { for mode in pages map; do "$python" "$worker" check $mode $mode.db; done; }
filled() {
  for mode in pages map; do "$python" "$worker" fill $mode $mode.db "$transactions"; done
  checked
}
start_volume
tell python3-lmdb
both filled
again checked

# write_on MODE: a writer that goes on until it is killed, and says outside what it was promised.
writer=
write_on() {
  rm -f "$work/promised"
  "$python" "$worker" fill "$1" "$app/$1.db" 1000000 "$work/promised" >/dev/null 2>&1 &
  writer=$!
  until_true test -s "$work/promised"
  sleep 0.5
}
end_writer() { kill -9 $writer 2>/dev/null || :; wait $writer 2>/dev/null || :; }
for kill in $(seq "$kills"); do
  for mode in pages map; do
    write_on $mode
    end_writer
    "$python" "$worker" check $mode "$app/$mode.db" "$(cat "$work/promised")" || fail "$mode: its writer was killed"
    write_on $mode
    kill_daemon
    end_writer # of a mapping that is gone it dies by itself
    "$python" "$worker" check $mode "$app/$mode.db" "$(cat "$work/promised")" || fail "$mode: the daemon was killed"
  done
done
if command -v mdb_dump >/dev/null; then
  for mode in pages map; do
    mdb_dump -n "$app/$mode.db" | wc -l | grep -q '^[1-9]' || fail "mdb_dump"
  done
fi
finish
