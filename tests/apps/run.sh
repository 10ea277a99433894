#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real programs on a mount: every script of this folder with its full counts, one after the other, and
# a line of each. What ctest runs of them, and when, is in CMakeLists.txt.
#
#   run.sh [--install] [NAME…]     NACRE_BIN is the folder of the programs (default: build/release/bin)
#
#   --install   installs the packages that the scripts want before (Debian, as root); servers that come
#               with them are not started
#
# Exit status: 0 all passed, 1 one failed, 2 usage, 8 the packages cannot be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export NACRE_BIN=${NACRE_BIN:-$here/../../build/release/bin} NACRE_LONG=1

packages=(
  git sqlite3 python3-lmdb lmdb-utils inotify-tools tar rsync attr gcc g++ make ccache # in the gate, too
  gcc-multilib libc6-dev-i386 cargo
  postgresql mariadb-server borgbackup restic qemu-utils dovecot-core
  samba smbclient nfs-ganesha nfs-ganesha-vfs libnfs-utils
  libreoffice-writer-nogui libreoffice-calc-nogui unzip
)
npm_packages=(npm) # apart: it cannot be had where Node.js comes from elsewhere

install_packages() {
  local log no_start=/usr/sbin/policy-rc.d own=
  log=$(mktemp)
  if [ ! -e $no_start ]; then
    printf '#!/bin/sh\nexit 101\n' >$no_start && chmod +x $no_start && own=yes
  fi
  local status=0
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -q update && apt-get -q -y --no-install-recommends install "${packages[@]}"; } >"$log" 2>&1 || status=8
  command -v npm >/dev/null || apt-get -q -y --no-install-recommends install "${npm_packages[@]}" >>"$log" 2>&1 ||
    echo "npm is left out: apt-get cannot install it"
  [ -z "$own" ] || rm $no_start
  [ $status = 0 ] || tail -n 20 "$log" >&2
  rm -f "$log"
  return $status
}

names=()
for argument; do
  case $argument in
    --install) install_packages || exit 8 ;;
    -*) sed -n '6,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) names+=("${argument%.sh}") ;;
  esac
done
if [ ${#names[@]} = 0 ]; then
  for script in "$here"/*.sh; do
    case ${script##*/} in run.sh | app_harness.sh) ;; *) names+=("$(basename "$script" .sh)") ;; esac
  done
fi
failed=0
for name in "${names[@]}"; do
  [ -x "$here/$name.sh" ] || { echo "$0: there is no $name.sh" >&2; exit 2; }
  log=$(mktemp) status=0 begin=$SECONDS
  "$here/$name.sh" >"$log" 2>&1 || status=$?
  case $status in
    0) verdict=passed ;;
    77) verdict=skipped ;;
    *) verdict=FAILED failed=1 ;;
  esac
  echo "$name: $verdict, $((SECONDS - begin)) s"
  sed -n 's/^ran: /  /p; s/^skipped: /  skipped: /p' "$log"
  [ $status = 0 ] || [ $status = 77 ] || tail -n 12 "$log"
  rm -f "$log"
done
exit $failed
