#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the whole gate, tools/test.sh, on a bare system of another release: a root folder that
# debootstrap made, and a copy of the last commit in it.
#
#   bare_system.sh ROOT [TEST_SH_OPTION…]
#
# ROOT is the folder of the system, for example from
#   debootstrap --variant=minbase trixie ROOT http://deb.debian.org/debian
# The packages that Nacre needs are installed in it, the source is ROOT/nacre, and the compiler cache
# is ROOT/root/.cache, so a second run is faster. With NACRE_CLEAN_ROOT=1 the packages are also
# installed on a clean system of the same release (clean_root.sh). Needs root and /dev/fuse.
# tests/packaging/two_systems.sh then moves volumes between this system and that one. Exit status:
# that of tools/test.sh, or 2.
set -Eeuo pipefail
[ $# -ge 1 ] || { sed -n '3,/^set /s/^# \{0,1\}//p' "$0" | head -n -1 >&2; exit 2; }
root=$(realpath -- "$1")
shift
source_root=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "$0: only root may chroot" >&2; exit 2; }
[ -e /dev/fuse ] || { echo "$0: there is no /dev/fuse" >&2; exit 2; }
[ -x "$root/usr/bin/env" ] || { echo "$0: $root holds no system; debootstrap makes one" >&2; exit 2; }

# The mounts below end with this namespace.
if [ -z "${NACRE_BARE_SYSTEM-}" ]; then
  NACRE_BARE_SYSTEM=1 exec unshare --mount --pid --fork --propagation private bash "$0" "$root" "$@"
fi
# unshare(1) wants a mount at the root, also within.
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
[ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$root/etc/resolv.conf"

# A system that was booted once has it, and fusermount3 reads it.
[ -e "$root/etc/mtab" ] || ln -s ../proc/self/mounts "$root/etc/mtab"

mkdir -p "$root/nacre"
# The build folder of an earlier run stays.
find "$root/nacre" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git -C "$source_root" archive HEAD | tar -x -C "$root/nacre"
for name in DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin; do
  environment+=("$name")
done
for name in NACRE_LONG NACRE_SEED NACRE_CLEAN_ROOT NACRE_DEBIAN_MIRROR NACRE_FUZZ_SECONDS http_proxy https_proxy; do
  [ -z "${!name-}" ] || environment+=("$name=${!name}")
done
exec chroot "$root" /usr/bin/env -i "${environment[@]}" bash -c '
  set -eu
  apt-get update -q
  cd /nacre
  exec tools/test.sh "$@"' bare_system "$@"
