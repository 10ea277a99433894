#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to a mounted volume: installs what is missing, builds Release, makes VOLUME
# if it does not exist, and mounts it at MOUNTPOINT. If you run it again, it only mounts. Works as
# root and as an ordinary user.
#
#   quickstart.sh VOLUME MOUNTPOINT [--passphrase-file F] [--cuda | --no-cuda | --bin DIR]
#   quickstart.sh --build-only [--cuda | --no-cuda]
#
#   --passphrase-file F  do not ask; one newline at the end of F is ignored
#   --cuda, --no-cuda    build the code for GPUs, or do not, whatever is built already. By default it
#                        is built if there are an NVIDIA GPU and nvcc
#   --bin DIR            use the programs in DIR; install and build nothing
#
# Exit status: 0 mounted (or built), 2 usage, 8 something failed, 32 MOUNTPOINT is in use; otherwise
# that of mkfs.nacre or mount.nacre.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
bin=$build/bin
me=$(id -un 2>/dev/null || id -u)

# die STATUS WORD…
die() {
  local status=$1
  shift
  echo "quickstart: $*" >&2
  exit "$status"
}
usage() {
  echo "usage: $0 VOLUME MOUNTPOINT [--passphrase-file F] [--cuda | --no-cuda | --bin DIR]" >&2
  echo "       $0 --build-only [--cuda | --no-cuda]" >&2
  exit 2
}
is_volume() { [ -e "$volume/superblock" ] || [ -e "$volume/superblock.copy" ]; }
say_how_to_unmount() { printf 'Unmount: %q umount %q\n' "$bin/nacre" "$mountpoint"; }
# Prints the type or source of the topmost mount at MOUNTPOINT, or nothing.
mounted_there() { findmnt -rn -o "$1" --mountpoint "$mountpoint" 2>/dev/null | tail -n 1; }
# The kernel's cache may answer a plain stat long after the daemon has ended. Over io_uring the
# kernel cancels requests for a moment before it says that nobody serves them.
is_dead() {
  local said
  said=$(LC_ALL=C timeout 10 stat -f -- "$mountpoint" 2>&1)
  [[ $said == *'endpoint is not connected'* || $said == *'Operation canceled'* ||
    $said == *'caused connection abort'* ]]
}
detach() {
  if [ "$(id -u)" = 0 ]; then umount -l -- "$mountpoint"; else fusermount3 -u -z -- "$mountpoint"; fi
}

# Ends the script if MOUNTPOINT is not free. Removes the mount of a killed daemon.
check_mountpoint() {
  local type source
  while type=$(mounted_there FSTYPE) && [ -n "$type" ]; do
    source=$(printf '%b' "$(mounted_there SOURCE)")
    [ "$type" = fuse.nacre ] ||
      die 32 "$mountpoint is in use: a file system of type $type ($source) is mounted there;" \
        "choose another mount point"
    if is_dead; then
      echo "The daemon of the mount of $source at $mountpoint has ended without unmounting; what" \
        "was not synced before may be lost. Removing the dead mount."
      detach || die 32 "there is a dead mount on $mountpoint, and $me may not remove it:" \
        "its owner runs fusermount3 -u $mountpoint, or root umount $mountpoint"
      continue
    fi
    [ "$source" = "$volume" ] ||
      die 32 "$mountpoint is in use: another volume ($source) is mounted there;" \
        "choose another mount point, or unmount that one first"
    echo "Already mounted: $volume at $mountpoint"
    say_how_to_unmount
    exit 0
  done
  [ ! -e "$mountpoint" ] || [ -d "$mountpoint" ] || die 8 "$mountpoint is not a directory"
  [ -z "$(ls -A -- "$mountpoint" 2>/dev/null)" ] ||
    die 8 "the mount point $mountpoint is not empty; name a new or an empty directory"
}

check_volume() {
  [ ! -e "$volume" ] || [ -d "$volume" ] || die 8 "$volume is not a directory"
  if ! is_volume && [ -d "$volume" ] && [ -n "$(ls -A -- "$volume")" ] &&
    [ ! -e "$volume/mkfs-unfinished" ]; then
    die 2 "$volume holds files but is no Nacre volume; name a new or an empty directory"
  fi
}

has_nvcc() { [ -n "$(PATH=${CUDA_PATH:-}/bin:$PATH:/usr/local/cuda/bin command -v nvcc)" ]; }
has_gpu() { compgen -G '/proc/driver/nvidia/gpus/*' >/dev/null; }
# Settles cuda, on or off, and says why.
choose_cuda() {
  case $cuda in
    on) has_nvcc || die 8 "there is no nvcc for --cuda: install the CUDA toolkit, or add its bin to PATH" ;;
    any)
      cuda=off
      if has_gpu && has_nvcc; then
        cuda=on
        echo "There is a GPU: building the code for it too (--no-cuda leaves it out)."
      elif has_gpu; then
        echo "There is a GPU, but no CUDA toolkit (nvcc): leaving out the code for GPUs."
      fi ;;
  esac
}

# True if nothing must be built: no source has changed since the last build.
is_built() {
  local stamp=$build/quickstart-built
  [ -x "$bin/mount.nacre" ] && [ -e "$stamp" ] &&
    { [ "$cuda" = any ] || [ "$(cat "$stamp")" = "$cuda" ]; } &&
    [ -z "$(find "$root"/{CMakeLists.txt,CMakePresets.json,cmake,fs,gpu_engine,metadata,tools} \
      -newer "$stamp" -print -quit)" ]
}
step() { printf '\n[%d/%d] %s\n' "$1" "$([ $build_only = yes ] && echo 2 || echo 3)" "$2"; }
build_programs() {
  # An ordinary user may use programs that somebody else built here.
  if [ ! -w "$root" ] || { [ -e "$build" ] && [ ! -w "$build" ]; }; then
    [ ! -x "$bin/mount.nacre" ] || return 0
    die 8 "nothing is built in $root, and $me may not write there;" \
      "its owner runs $0 --build-only"
  fi
  choose_cuda
  local minutes=6
  [ "$cuda" = off ] || minutes=14
  mkdir -p "$build"
  echo "$cuda" >"$build/quickstart-began"
  step 1 "Installing the packages that are missing"
  "$root/tools/install_dependencies.sh"
  step 2 "Building: some $minutes minutes of processor time, and $(nproc) processors"
  # Another compiler may warn of more: that is for developers, not for users.
  "$root/tools/build.sh" release -DNACRE_TESTS=OFF -DNACRE_WERROR=OFF -DNACRE_CUDA="${cuda^^}"
  mv "$build/quickstart-began" "$build/quickstart-built"
  [ $build_only = yes ] || step 3 "Mounting"
}

passphrase=() build_only=no cuda=any given_bin='' places=()
while [ $# -gt 0 ]; do
  case $1 in
    --passphrase-file)
      [ $# -ge 2 ] || usage
      [ -r "$2" ] || die 2 "cannot read the passphrase file $2"
      [ -f "$2" ] || die 2 "the passphrase file $2 is not a plain file: it may be read twice"
      passphrase=(--passphrase-file "$(realpath -- "$2")")
      shift ;;
    --bin)
      [ $# -ge 2 ] || usage
      [ -x "$2/mount.nacre" ] || die 2 "there is no mount.nacre in $2"
      given_bin=$(realpath -- "$2")
      shift ;;
    --build-only) build_only=yes ;;
    --cuda) cuda=on ;;
    --no-cuda) cuda=off ;;
    -*) usage ;;
    *) places+=("$1") ;;
  esac
  shift
done

[ -z "$given_bin" ] || [ $cuda = any ] || usage

# These checks come before the build, so that it is not in vain.
if [ $build_only = yes ]; then
  [ ${#places[@]} = 0 ] && [ -z "$given_bin" ] || usage
else
  [ ${#places[@]} = 2 ] || usage
  volume=$(realpath -m -- "${places[0]}")
  mountpoint=$(realpath -m -- "${places[1]}")
  bin=${given_bin:-$bin}
  check_mountpoint
  check_volume
  [ ${#passphrase[@]} -gt 0 ] || [ -t 0 ] ||
    die 2 "there is no terminal to ask for a passphrase on; give --passphrase-file F"
  [ -e /dev/fuse ] || modprobe fuse 2>/dev/null ||
    die 8 "there is no /dev/fuse: as root, load it with modprobe fuse;" \
      "in a container, pass the device in (--device /dev/fuse)"
  mkdir -p -- "$(dirname -- "$volume")" "$mountpoint" ||
    die 8 "$me cannot make these directories, see above"
fi

[ -n "$given_bin" ] || is_built || build_programs
if [ $build_only = yes ]; then
  echo "Built: $bin"
  exit 0
fi

if ! is_volume; then
  "$bin/mkfs.nacre" "${passphrase[@]}" "$volume"
fi
"$bin/mount.nacre" "$volume" "$mountpoint" "${passphrase[@]}"

echo "Mounted: $volume at $mountpoint"
say_how_to_unmount
