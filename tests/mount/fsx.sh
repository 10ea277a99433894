#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The fsx of xfstests on a mount, over /dev/fuse and (NACRE_IO_URING_TESTS) over io_uring, as the public suites call it:
# operations of up to 128,000 bytes on a file of up to 600,000, plain, with O_DIRECT, by AIO and by
# io_uring, and closing and opening the file now and then; with chunks of 4 KiB, 64 KiB and 1 MiB.
#
#   NACRE_SUITES=SUITES fsx.sh
#
# fsx is no part of this repository: SUITES/xfstests/ltp/fsx is built elsewhere (kdave/xfstests).
# Without it the gate's stand-in is exerciser/, which makes the same calls (docs/TESTS.md).
# NACRE_LONG: 32 seeds of 400,000 operations over each transport, else 7 of 5,000.
# NACRE_FSX_SEEDS and NACRE_FSX_OPERATIONS name other numbers, NACRE_SEED the first seed.
test_suites=${NACRE_SUITES-}
skip_early() {
  echo "skipped: fsx: $*"
  exit 77
}
[ -n "$test_suites" ] || skip_early "NACRE_SUITES names no folder of built suites"
fsx=$test_suites/xfstests/ltp/fsx
[ -x "$fsx" ] || skip_early "there is no $fsx"
# Mounts of its own, so that no mount namespace that another test makes holds a volume that is to be
# unmounted here; and this one holds nobody else's.
if [ "$(id -u)" = 0 ] && [ -z "${NACRE_OWN_MOUNTS-}" ] && unshare --mount true 2>/dev/null; then
  NACRE_OWN_MOUNTS=1 exec unshare --mount --propagation private bash "$0"
fi
if [ -n "${NACRE_OWN_MOUNTS-}" ]; then
  findmnt -rn -t fuse.nacre -o TARGET | tac | while read -r other; do umount -l "$other" || true; done
fi
. "$(dirname "$0")/../support/mount_harness.sh"

if [ -n "${NACRE_LONG-}" ]; then seeds=32 operations=400000; else seeds=7 operations=5000; fi
seeds=${NACRE_FSX_SEEDS:-$seeds} operations=${NACRE_FSX_OPERATIONS:-$operations}
first_seed=${NACRE_SEED:-1}
direct="-Z -R -W -r 4096 -w 4096 -t 4096"
ways=("" "$direct" "-A" "-A $direct" "-U" "-U $direct" "-c 10")
chunk_sizes=(64K 4K 1M)

# What one seed does: way and size of chunks change from seed to seed. Seven seeds in a row go all
# ways and meet all sizes; 21 meet every way with every size.
run_seed() { # SEED
  local seed=$1 way chunk_size status=0
  way=${ways[$((seed % ${#ways[@]}))]}
  chunk_size=${chunk_sizes[$((seed % ${#chunk_sizes[@]}))]}
  make_volume --chunk-size "$chunk_size"
  mount_volume -o "io_uring=$switched"
  mkdir -p "$work/logs"
  # shellcheck disable=SC2086
  (cd "$mnt" && "$fsx" -q -N "$operations" -o 128000 -l 600000 -S "$seed" $way -P "$work/logs" file) \
    >"$work/fsx.log" 2>&1 || status=$?
  if [ $status -ne 0 ]; then
    head -n 20 "$work/fsx.log"
    fail "fsx -N $operations -o 128000 -l 600000 -S $seed $way over $transport, chunks of $chunk_size: status $status"
  fi
  finish
  rm -rf "$volume"
}

run_transport() { # TRANSPORT on|off
  transport=$1 switched=$2
  local i
  for ((i = 0; i < seeds; ++i)); do
    run_seed $((first_seed + i))
  done
  echo "$seeds seeds from $first_seed of $operations operations over $transport"
}

run_transport /dev/fuse off
[ -n "${NACRE_IO_URING_TESTS-}" ] || { skip_part io_uring "tools/test.sh --io-uring runs it"; exit 0; }
switch=/sys/module/fuse/parameters/enable_uring
[ -r "$switch" ] || { skip_part io_uring "this kernel has no FUSE over io_uring"; exit 0; }
# Not while a test relies on it as it is (fuse_uring_test.cpp).
turn() { { flock 9 && echo "$1" >"$switch"; } 9<"$switch"; }
turn_back() {
  local status=$?
  trap - ERR
  set +e
  turn "$before"
  (exit $status)
  cleanup
}
before=$(cat "$switch")
if [ "$before" != Y ]; then
  turn Y 2>/dev/null || { skip_part io_uring "it is off and only root can switch it on"; exit 0; }
  trap turn_back EXIT
fi
run_transport io_uring on
