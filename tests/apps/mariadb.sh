#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MariaDB (InnoDB with O_DIRECT) under three writers, with kill -9 of the server and of the daemon:
# every row whose commit was confirmed is there, CHECK TABLE and innochecksum find nothing, and a dump
# loads elsewhere.
. "$(dirname "$0")/app_harness.sh"
is_root || skip "root must give the server a user of its own"
id mysql >/dev/null 2>&1 || skip "there is no MariaDB"
needs mariadbd mariadb-install-db mariadb mariadb-dump innochecksum
seconds=$(counts 4 30) kills=$(counts 1 5)
mount_options=(-o allow_other)
start_volume
tell mariadb-server
data=$mnt/data socket=$work/run/mariadb.sock
install -d -o mysql -g mysql -m 700 "$data" "$work/run" "$plain/data"
sql() { mariadb --no-defaults -S "$socket" -u root -N -B "$@"; }
start_server() { # FOLDER
  serve mariadb setpriv --reuid mysql --regid mysql --init-groups \
    mariadbd --no-defaults --datadir="$1" --socket="$socket" --pid-file="$work/run/pid" --skip-networking \
    --skip-grant-tables --innodb-flush-method=O_DIRECT --innodb-flush-log-at-trx-commit=1 \
    --innodb-buffer-pool-size=64M --innodb-log-file-size=32M --log-bin="$1/bin" --sync-binlog=1
  until_true sql -e 'SELECT 1'
}
stop_server() {
  kill -TERM "$(cat "$work/run/pid")"
  wait "${servers[0]}" || fail "the server ended badly: $(tail -n 3 "$work/mariadb.log")"
  end_servers
}
kill_server() {
  kill -9 "${servers[0]}" 2>/dev/null || :
  wait "${servers[0]}" 2>/dev/null || :
  end_servers
  rm -f "$work/run"/*
}
kill_both() { kill_daemon; kill_server; }
install_tables() { # FOLDER
  mariadb-install-db --no-defaults --user=mysql --datadir="$1" --auth-root-authentication-method=normal \
    >"$work/install.log" 2>&1 || fail "mariadb-install-db: $(grep -iE "error|cannot|denied|fail" "$work/install.log" | tail -n 8)"
}
install_tables "$data"
start_server "$data"
sql -e 'CREATE DATABASE work; CREATE TABLE work.receipt (writer INT, number INT, filler VARCHAR(2000),
  PRIMARY KEY (writer, number), KEY (filler(20))) ENGINE=InnoDB'

confirm() { # WRITER FIRST
  local number=$2
  {
    while :; do
      echo "INSERT INTO work.receipt VALUES ($1, $number, repeat('$number', 60)); SELECT $number;"
      number=$((number + 1))
    done
  } 2>/dev/null | sql --unbuffered 2>/dev/null >"$work/receipts.$1" || :
}
check_database() { # WHEN
  local writer least
  for writer in 1 2 3; do
    least=$(grep -E '^[0-9]+$' "$work/receipts.$writer" | tail -n 1)
    [ -n "$least" ] || fail "$1: writer $writer was promised nothing"
    [ "$(sql -e "SELECT count(*) FROM work.receipt WHERE writer = $writer AND number BETWEEN 1 AND $least
      AND filler = repeat(number, 60)")" = "$least" ] ||
      fail "$1: writer $writer was promised $least rows"
  done
  sql -e 'CHECK TABLE work.receipt EXTENDED' >"$work/check.log"
  grep -q 'status.*OK' "$work/check.log" || fail "$1: CHECK TABLE: $(cat "$work/check.log")"
}
first=(0 1 1 1)
work_and() { # WHAT TO KILL
  local writer
  for writer in 1 2 3; do confirm $writer "${first[$writer]}" & done
  sleep "$seconds"
  kill -0 "${servers[0]}" || fail "the server ended: $(tail -n 3 "$work/mariadb.log")"
  "$1"
  wait $(jobs -p | grep -vx "${servers[0]:-0}") 2>/dev/null || :
  start_server "$data"
  check_database "after $1"
  for writer in 1 2 3; do
    first[$writer]=$(($(sql -e "SELECT max(number) FROM work.receipt WHERE writer = $writer") + 1))
  done
}
for _ in $(seq "$kills"); do
  work_and kill_server
  work_and kill_both
done
dump() { mariadb-dump --no-defaults -S "$socket" -u root --skip-comments --skip-extended-insert --order-by-primary work; }
dump >"$work/dump.sql" || fail "mariadb-dump"
stop_server
innochecksum "$data/work/receipt.ibd" || fail "innochecksum"

install_tables "$plain/data"
start_server "$plain/data"
sql -e 'CREATE DATABASE work' && sql work <"$work/dump.sql" || fail "the dump does not load"
dump | cmp - "$work/dump.sql" || fail "the dump's dump is another one"
stop_server
remount "${mount_options[@]}"
start_server "$data"
dump | cmp - "$work/dump.sql" || fail "after a new mount the dump is another one"
stop_server
finish
