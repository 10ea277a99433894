#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to a mounted volume: installs what is missing, builds Release, makes VOLUME
# when it is not there yet and leaves it mounted at MOUNTPOINT. Run again it just mounts. Works as
# root and as an ordinary user.
#
#   quickstart.sh VOLUME MOUNTPOINT [--passphrase-file F]
#   quickstart.sh --build-only
#
# Exit status: 0 mounted (or built), 2 usage, 8 something failed, else that of mkfs.nacre or
# mount.nacre.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/build/release/bin

die() { echo "quickstart: $2" >&2; exit "$1"; }
is_volume() { [ -e "$volume/superblock" ] || [ -e "$volume/superblock.copy" ]; }
usage() {
  echo "usage: $0 VOLUME MOUNTPOINT [--passphrase-file F]" >&2
  echo "       $0 --build-only" >&2
  exit 2
}

passphrase=() build_only=no places=()
while [ $# -gt 0 ]; do
  case $1 in
    --passphrase-file)
      [ $# -ge 2 ] || usage
      [ -r "$2" ] || die 2 "cannot read the passphrase file $2"
      passphrase=(--passphrase-file "$(realpath -- "$2")")
      shift ;;
    --build-only) build_only=yes ;;
    -*) usage ;;
    *) places+=("$1") ;;
  esac
  shift
done

if [ $build_only = no ]; then
  [ ${#places[@]} = 2 ] || usage
  volume=$(realpath -m -- "${places[0]}")
  mountpoint=$(realpath -m -- "${places[1]}")

  # What would fail after the build fails before it.
  source=$(findmnt -n -o SOURCE,FSTYPE --mountpoint "$mountpoint" 2>/dev/null || true)
  case $source in
    '') ;;
    *nacre*)
      echo "Already mounted: $mountpoint ($source)"
      exit 0 ;;
    *) die 32 "$mountpoint is in use by another mount ($source); choose another mount point" ;;
  esac
  if ! is_volume && [ -d "$volume" ] && [ -n "$(ls -A -- "$volume")" ] &&
    [ ! -e "$volume/mkfs-unfinished" ]; then
    die 2 "$volume holds files but is no Nacre volume; name a new or an empty directory"
  fi
  [ ${#passphrase[@]} -gt 0 ] || [ -t 0 ] ||
    die 2 "there is no terminal to ask for a passphrase on; give --passphrase-file F"
elif [ ${#places[@]} -gt 2 ]; then
  usage
fi

# An ordinary user may use programs that somebody else built here.
if [ -w "$root" ]; then
  "$root/tools/install_dependencies.sh"
  # Another compiler may warn of more: that is for developers, not for users.
  "$root/tools/build.sh" release -DNACRE_TESTS=OFF -DNACRE_WERROR=OFF
elif [ ! -x "$bin/mount.nacre" ]; then
  die 8 "nothing is built in $root, and $(id -un) may not write there; its owner runs $0 --build-only"
fi
if [ $build_only = yes ]; then
  echo "Built: $bin"
  exit 0
fi

if ! is_volume; then
  "$bin/mkfs.nacre" "${passphrase[@]}" "$volume"
fi
mkdir -p -- "$mountpoint"
"$bin/mount.nacre" "$volume" "$mountpoint" "${passphrase[@]}"

echo "Mounted: $volume at $mountpoint"
echo "Unmount: $bin/nacre umount $mountpoint"
