#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Volumes go from this system to another one and back: each reads, changes, checks, trims and rotates what the
# other wrote, and recovers what it left when it was killed. Both ways, every file compared.
#
# NACRE_OTHER_ROOT is a root folder of the other system (debootstrap makes one) in which Nacre was built;
# NACRE_OTHER_BIN is the folder of its programs as seen in there, /nacre/build/release/bin without it. As root.
set -Eeuo pipefail
export LC_ALL=C.UTF-8
skip() { echo "skipped: packaging_two_systems: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
: "${NACRE_BIN:?NACRE_BIN must name the folder of this system\'s programs}"
source_root=$(cd "$(dirname "$0")/../.." && pwd)
root=${NACRE_OTHER_ROOT-} other_bin=${NACRE_OTHER_BIN:-/nacre/build/release/bin}
[ -n "$root" ] || skip 'NACRE_OTHER_ROOT names no root of another system'
[ "$(id -u)" = 0 ] || skip 'only root may chroot'
[ -e /dev/fuse ] || skip 'there is no /dev/fuse'
[ -x "$root$other_bin/mount.nacre" ] || fail "there is no $root$other_bin/mount.nacre"
# In a mount namespace of its own: one that begins meanwhile would take these mounts along and hold them.
if [ -z "${NACRE_TWO_SYSTEMS-}" ]; then
  NACRE_TWO_SYSTEMS=1 exec unshare --mount --propagation private bash "$0" "$@"
fi
name_of() { (. "$1/etc/os-release" && echo "$PRETTY_NAME"); }

work=$(mktemp -d "$root/tmp/nacre-two_systems.XXXXXX")
inside=${work#"$root"} mnt=$work/mnt mounted=()
cleanup() {
  local status=$? place
  trap - EXIT ERR
  set +e
  umount -l "$mnt" 2>/dev/null
  for place in $(daemons); do kill -9 "$place"; done
  wait_for_daemons
  for place in "${mounted[@]}"; do umount -l "$place"; done
  rm -rf --one-file-system "$work"
  exit $status
}
daemons() {
  local process words
  for process in /proc/[0-9]*; do
    mapfile -d '' words 2>/dev/null <"$process/cmdline" || continue
    case ${words[0]-} in mount.nacre | */mount.nacre) ;; *) continue ;; esac
    case "${words[*]}" in *"$inside"*) echo "${process#/proc/}" ;; esac
  done
}
wait_for_daemons() { while [ -n "$(daemons)" ]; do sleep 0.1; done; }
trap cleanup EXIT
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND" >&2' ERR
trap 'exit 130' INT TERM
for place in dev proc; do
  if ! mountpoint -q "$root/$place"; then
    mount --rbind "/$place" "$root/$place"
    mount --make-rslave "$root/$place"
    mounted=("$root/$place" "${mounted[@]}")
  fi
done

# on here|there PROGRAM ARGUMENT…, where @ is the work folder.
on() {
  local system=$1 code=0
  shift
  if [ "$system" = here ]; then
    env HOME="$work/here" PATH="$NACRE_BIN:$PATH" "${@//@/$work}" >"$work/said" 2>&1 </dev/null || code=$?
  else
    chroot "$root" env -C / HOME="$inside/there" PATH="$other_bin:/usr/sbin:/usr/bin:/sbin:/bin" "${@//@/$inside}" \
      >"$work/said" 2>&1 </dev/null || code=$?
  fi
  [ $code = 0 ] || fail "$system, $*: ends with $code: $(cat "$work/said")"
}
secret=(--passphrase-file @/passphrase)
mount_on() { on "$1" mount.nacre "${secret[@]}" @/volume @/mnt; }
umount_on() { on "$1" nacre umount @/mnt; wait_for_daemons; }
# A rotated volume has another fingerprint: whoever did not rotate it is told, and removes the line of the old one.
rotate_on() {
  on "$1" nacre key rotate "${@:3}"
  rm "$work/$2/.config/nacre/known_volumes"
}
check_on() { on "$1" fsck.nacre --deep --scrub "${secret[@]}" @/volume; }
# Everything about a tree that must survive, but for the sizes of folders.
state() {
  (
    cd "$1"
    find . -type d -printf '%p\t%y %m %U %G %T@\n' -o -printf '%p\t%y %m %U %G %n %s %l %T@\n' | sort
    find . -type f -print0 | sort -z | xargs -0 -r sha256sum
    getfattr -R -h -d -m user . 2>/dev/null
  )
}
note() { state "$mnt" >"$work/state"; }
compare() {
  state "$mnt" >"$work/found"
  cmp -s "$work/state" "$work/found" || fail "$1: $(diff "$work/state" "$work/found" | head -n 20)"
}
# change SEED: some of everything that changes a tree.
change() {
  local folder=$mnt/changed$1
  python3 -B "$source_root/tests/support/make_tree.py" "$folder" 400 "$1"
  head -c 3000000 /dev/urandom >"$folder/noise"
  truncate -s 40M "$folder/sparse"
  printf 'in the middle' | dd of="$folder/sparse" bs=1 seek=20000000 conv=notrunc status=none
  setfattr -n user.seed -v "$1" "$folder/noise"
  find "$mnt/tree" -type f | sort | awk -v seed="$1" 'NR % 7 == seed % 7' >"$work/some"
  while read -r file; do printf 'more, by %s\n' "$1" >>"$file"; done <"$work/some"
  find "$mnt/tree" -type f | sort | awk -v seed="$1" 'NR % 11 == seed % 11' | xargs -d '\n' rm --
  find "$mnt/tree" -type f | sort | awk -v seed="$1" 'NR % 13 == seed % 13' >"$work/some"
  while read -r file; do mv -- "$file" "$file.$1"; done <"$work/some"
}

# travel FIRST SECOND MKFS-OPTION…: made by FIRST.
travel() {
  local first=$1 second=$2
  shift 2
  rm -rf "$work/volume" "$work/tree" "$work/here" "$work/there"
  mkdir -p "$mnt" "$work/here" "$work/there"
  printf 'correct horse battery staple\n' >"$work/passphrase"
  python3 -B "$source_root/tests/support/make_tree.py" "$work/tree" 2500 7
  on "$first" mkfs.nacre "${secret[@]}" --kdf-memory 8192 --kdf-time 1 "$@" @/volume
  mount_on "$first"
  cp -a "$work/tree" "$mnt/"
  note
  diff -r --no-dereference "$work/tree" "$mnt/tree" || fail 'the copy differs'
  umount_on "$first"

  mount_on "$second"
  compare "$second reads what $first wrote"
  change 1
  note
  umount_on "$second"
  check_on "$first"
  check_on "$second"

  mount_on "$first"
  compare "$first reads what $second changed"
  change 2
  note
  on "$first" nacre sync @/mnt
  kill -9 $(daemons)
  wait_for_daemons
  umount -l "$mnt"

  # The log of one is recovered by the other, and both ways of cleaning up.
  mount_on "$second"
  compare "$second recovers what $first left when it was killed"
  rm -r "$mnt/changed1"
  change 3
  note
  umount_on "$second"
  on "$second" nacre trim "${secret[@]}" @/volume
  rotate_on "$second" "$first" "${secret[@]}" @/volume
  check_on "$first"
  mount_on "$first"
  compare "$first reads what $second trimmed and rotated"
  change 4
  rm -r "$mnt/changed2"
  note
  on "$first" nacre sync @/mnt
  on "$first" nacre trim @/mnt
  rotate_on "$first" "$second" @/mnt
  umount_on "$first"
  check_on "$second"
  check_on "$first"
  mount_on "$second"
  compare "$second reads what $first trimmed and rotated while it was mounted"
  umount_on "$second"
  echo "$first to $second and back, $*: $(wc -l <"$work/state") lines of state, $(du -sh "$work/volume" | cut -f 1)"
}

echo "here: $(name_of /), there: $(name_of "$root")"
travel here there --codec lz77 --cipher aes-256-gcm
travel there here --codec lz77 --cipher aes-256-gcm
travel there here --codec zstd --cipher aes-256-cbc --padding padme
travel here there --codec gdeflate --cipher aes-128-ctr
travel there here --cipher des-ede3-cbc --allow-legacy-cipher
