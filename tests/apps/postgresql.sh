#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PostgreSQL under pgbench, with kill -9 of the server and of the daemon: every row whose commit was
# confirmed is there, the sums hold, amcheck and pg_checksums find nothing, and a dump loads elsewhere.
. "$(dirname "$0")/app_harness.sh"
is_root || skip "root must give the server a user of its own"
id postgres >/dev/null 2>&1 || skip "there is no PostgreSQL"
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$programs/initdb" ] && [ -x "$programs/pgbench" ] || skip "there is no PostgreSQL"
seconds=$(counts 5 30) kills=$(counts 1 5)
mount_options=(-o allow_other)
start_volume
tell "postgresql-$(basename "$(dirname "$programs")")"

data=$mnt/data sockets=$work/sockets
install -d -o postgres -g postgres -m 700 "$data" "$sockets" "$plain/data"
pg() { as postgres env PGHOST="$sockets" PGUSER=postgres PGDATABASE=postgres "$programs/$1" "${@:2}"; }
sql() { pg psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
start_server() { # FOLDER
  serve postgres setpriv --reuid postgres --regid postgres --init-groups \
    "$programs/postgres" -D "$1" -k "$sockets" -c listen_addresses= -c shared_buffers=64MB \
    -c max_wal_size=128MB -c full_page_writes=on
  until_true sql -c 'SELECT 1'
}
stop_server() { pg pg_ctl -D "$1" -m fast -w stop >/dev/null && end_servers; }
kill_server() {
  local pids
  pids=$(pgrep -g "${servers[0]}" || :)
  kill -9 $pids 2>/dev/null || :
  wait "${servers[0]}" 2>/dev/null || :
  for pid in $pids; do while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; done
  end_servers
  rm -f "$sockets"/.s.PGSQL*
}

pg initdb -D "$data" --data-checksums -A trust >"$work/initdb.log" 2>&1 || fail "initdb: $(tail -n 3 "$work/initdb.log")"
start_server "$data"
pg pgbench -i -q -s "$(counts 2 20)" >"$work/pgbench.log" 2>&1 || fail "pgbench -i: $(tail -n 3 "$work/pgbench.log")"
sql -c 'CREATE EXTENSION amcheck; CREATE TABLE receipt (writer int, number int, filler text, PRIMARY KEY (writer, number))'

# A client that notes, outside of the volume, each number whose commit was confirmed.
confirm() { # WRITER FIRST
  trap '' TERM
  local number=$2
  {
    while :; do
      echo "INSERT INTO receipt VALUES ($1, $number, repeat('$number', 30)); SELECT $number;"
      number=$((number + 1))
    done
  } 2>/dev/null | sql 2>/dev/null >"$work/receipts.$1" || :
}
check_database() { # WHEN
  local writer least
  for writer in 1 2; do
    least=$(grep -E '^[0-9]+$' "$work/receipts.$writer" | tail -n 1)
    [ -n "$least" ] || fail "$1: writer $writer was promised nothing"
    [ "$(sql -c "SELECT count(*) FROM receipt WHERE writer = $writer AND number BETWEEN 1 AND $least
      AND filler = repeat(number::text, 30)")" = "$least" ] ||
      fail "$1: writer $writer was promised $least rows"
  done
  [ "$(sql -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)
      AND (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches)')" = t ] ||
    fail "$1: the sums of pgbench do not hold"
  pg pg_amcheck --heapallindexed --parent-check -d postgres >"$work/amcheck.log" 2>&1 ||
    fail "$1: pg_amcheck: $(tail -n 3 "$work/amcheck.log")"
}
first=(0 1 1)
work_and() { # WHAT TO KILL
  local writer
  pg pgbench -n -c 3 -T 600 >"$work/pgbench.log" 2>&1 &
  for writer in 1 2; do confirm $writer "${first[$writer]}" & done
  sleep "$seconds"
  kill -0 "${servers[0]}" || fail "the server ended: $(tail -n 3 "$work/postgres.log")"
  "$1"
  wait $(jobs -p | grep -vx "${servers[0]:-0}") 2>/dev/null || :
  start_server "$data"
  check_database "after $1"
  for writer in 1 2; do
    first[$writer]=$(($(sql -c "SELECT max(number) FROM receipt WHERE writer = $writer") + 1))
  done
}
kill_both() { kill_daemon; kill_server; }
for _ in $(seq "$kills"); do
  work_and kill_server
  work_and kill_both
done
sql -c 'VACUUM FULL pgbench_accounts' -c 'CHECKPOINT'
pg pg_dump --no-sync >"$work/dump.sql" || fail "pg_dump"
stop_server "$data"
pg pg_checksums --check -D "$data" >"$work/checksums.log" 2>&1 || fail "pg_checksums: $(tail -n 3 "$work/checksums.log")"

# The dump says the same in a plain directory.
pg initdb -D "$plain/data" -A trust >"$work/initdb.log" 2>&1 || fail "initdb in a plain directory"
start_server "$plain/data"
sql <"$work/dump.sql" >"$work/load.log" 2>&1 || fail "the dump does not load: $(tail -n 3 "$work/load.log")"
same_dump() { pg pg_dump --no-sync | grep -v '^--\|^\\' | cmp - <(grep -v '^--\|^\\' "$work/dump.sql"); }
same_dump || fail "the dump's dump is another one"
stop_server "$plain/data"

remount "${mount_options[@]}"
start_server "$data"
same_dump || fail "after a new mount the dump is another one"
stop_server "$data"
finish
