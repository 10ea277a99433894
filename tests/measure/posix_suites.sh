#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the public POSIX suites on a Nacre volume: pjdfstest with one and with six jobs, fsx and
# fsstress. They are not part of this repository; build them in a folder of your own:
#   SUITES/pjdfstest/pjdfstest and SUITES/pjdfstest/tests     (github.com/pjd/pjdfstest)
#   SUITES/xfstests/ltp/fsx and SUITES/xfstests/ltp/fsstress  (kdave/xfstests)
#
#   posix_suites.sh --suites SUITES --bin FOLDER [--kit FOLDER] [--out FOLDER] [--ops N]
#
# --bin holds mkfs.nacre and its fellows, --kit holds posix.sh (default: ../shared/kit next to
# the checkout). Needs root. Exit status: 0 all passed, 1 a failure, 2 usage, 77 cannot run here.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() { sed -n '9,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
skip() { echo "skipped: public POSIX suites: $*"; exit 77; }
suites=${NACRE_SUITES-} bin=${NACRE_BIN-} kit=$root/../shared/kit out= ops=20000
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --suites) suites=$2 ;;
    --bin) bin=$2 ;;
    --kit) kit=$2 ;;
    --out) out=$2 ;;
    --ops) ops=$2 ;;
    *) usage ;;
  esac
  shift 2
done
[ -n "$bin" ] || usage
[ -n "$suites" ] || skip "no folder of built suites was named (--suites)"
[ -x "$kit/posix.sh" ] || skip "there is no $kit/posix.sh"
[ "$(id -u)" = 0 ] || skip "they need root"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
bin=$(realpath "$bin")

work=$(mktemp -d /tmp/nacre-posix.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
out=${out:-$work/out}
export HOME=$work/home
mkdir -p "$HOME" "$out"
echo 'correct horse battery staple' >"$work/passphrase"

run() {
  "$kit/posix.sh" --suites "$suites" --work "$work/run" --ops "$ops" --cap 3000 "$@" --add nacre \
    "$bin/mkfs.nacre --passphrase-file $work/passphrase --kdf-memory 8192 --kdf-time 1 {back}" \
    "$bin/mount.nacre --passphrase-file $work/passphrase -o allow_other,default_permissions \
      {back} {mnt}" \
    "$bin/nacre umount {mnt}"
}
status=0
run --out "$out/one-job" --jobs 1 || status=1
run --out "$out/six-jobs" --jobs 6 --only pjd || status=1
exit $status
