#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SQLite databases with a roll-back journal and with a shared write-ahead log (mmap, byte-range
# locks) keep their integrity under three writing processes, over a new mount too.
. "$(dirname "$0")/../support/mount_harness.sh"

work_py=$source_root/tests/work/sqlite_work.py
seconds=4
make_volume
mount_volume
for mode in delete wal; do
  mkdir "$mnt/$mode"
  python3 "$work_py" run "$mnt/$mode" $mode $seconds || fail "$mode: the workload failed"
done
remount
for mode in delete wal; do
  python3 "$work_py" check "$mnt/$mode" || fail "$mode: damaged after a new mount"
  python3 "$work_py" run "$mnt/$mode" $mode 1 || fail "$mode: no further work"
done
finish
