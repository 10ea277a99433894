#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The profile of a browser such as Firefox: databases of SQLite in WAL mode, files of state that are
# written anew and renamed into place, many small files of a cache, a lock. The daemon dies in the
# middle of it; afterwards every database is sound and every file of state is a whole one.
. "$(dirname "$0")/app_harness.sh"
needs python3 sqlite3
worker=$source_root/tests/apps/profile_work.py
start_volume
tell sqlite3
profile=$mnt/profile
for kill in $(seq "$(counts 2 20)"); do
  python3 "$worker" browse "$profile" "$work/promised" >"$work/worker.log" 2>&1 &
  worker_pid=$!
  until_true test -s "$work/promised"
  sleep "$(counts 1 3)"
  kill -0 $worker_pid || fail "the worker ended: $(cat "$work/worker.log")"
  kill_daemon
  kill -9 $worker_pid 2>/dev/null || :
  wait $worker_pid 2>/dev/null || :
  python3 "$worker" check "$profile" "$work/promised" || fail "after kill -9 number $kill of the daemon"
  for name in places cookies; do
    [ "$(sqlite3 "$profile/$name.sqlite" 'PRAGMA integrity_check')" = ok ] || fail "$name is damaged"
  done
  rm -f "$work/promised"
done
remount
for name in places cookies; do
  [ "$(sqlite3 "$profile/$name.sqlite" 'PRAGMA integrity_check')" = ok ] || fail "$name after a new mount"
done
if [ -n "${NACRE_LONG-}" ] && command -v firefox-esr >/dev/null; then
  tell firefox-esr
  mkdir "$mnt/firefox"
  for _ in 1 2; do
    timeout 300 firefox-esr --headless --no-remote --profile "$mnt/firefox" --screenshot "$work/shot.png" about:blank \
      >"$work/firefox.log" 2>&1 || fail "firefox-esr: $(tail -n 3 "$work/firefox.log")"
    for database in "$mnt"/firefox/*.sqlite; do
      [ "$(sqlite3 "$database" 'PRAGMA integrity_check')" = ok ] || fail "$database is damaged"
    done
    remount
  done
fi
finish
