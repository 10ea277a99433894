# SPDX-License-Identifier: Apache-2.0
# For tests that work on a real mount; sourced by bash. It makes a private folder, a volume in it
# with the cheapest passphrase derivation, mounts and unmounts it, and leaves nothing behind however
# the test ends.
#
#   . tests/support/mount_harness.sh
#   make_volume; mount_volume; … "$mnt" …; remount; …; finish
#
# Variables: work (the folder), volume, mnt, passphrase_file. NACRE_BIN names the folder of the
# programs, NACRE_LONG is set for full counts, NACRE_SEED repeats a seeded test. NACRE_MKFS_OPTIONS
# are what mkfs.nacre is given too: one test for volumes of many kinds.
set -Eeuo pipefail
export LC_ALL=C.UTF-8

: "${NACRE_BIN:?NACRE_BIN must name the folder that holds mkfs.nacre}"
NACRE_BIN=$(realpath "$NACRE_BIN")
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
corpus=$source_root/../shared/corpus
test_name=$(basename "$0" .sh)

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# skip_part WHAT WHY: the rest of the test goes on. skip WHY: the whole test cannot run here.
skip_part() { echo "skipped: $test_name, $1: $2"; }
skip() {
  echo "skipped: $test_name: $*"
  exit 77
}
is_root() { [ "$(id -u)" = 0 ]; }

[ -e /dev/fuse ] || skip "there is no /dev/fuse"
is_root || command -v fusermount3 >/dev/null || skip "there is no fusermount3"

work=$(mktemp -d "${TMPDIR:-/tmp}/nacre-$test_name.XXXXXX")
chmod 755 "$work"
volume=$work/volume mnt=$work/mnt passphrase_file=$work/passphrase
mkdir "$mnt"
printf 'correct horse battery staple\n' >"$passphrase_file"
if [ -n "${NACRE_READY_KEYS-}" ]; then # see ready_keys.cpp
  export NACRE_READY_KEYS_TAKEN=$work/keys_taken LD_PRELOAD=$NACRE_BIN/libready_keys.so
fi
# What a user's programs keep per user (pinned fingerprints) stays in the folder.
export HOME=$work/home
mkdir "$HOME"
: >"$HOME/.profile" # an empty home stays empty (own_files.h)
# So does the control socket of an ordinary user's mount.
if ! is_root; then
  export XDG_RUNTIME_DIR=$work/run
  mkdir -m 700 "$XDG_RUNTIME_DIR"
fi
unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME XDG_CACHE_HOME

cleanup() {
  local status=$?
  trap - EXIT ERR
  set +e
  cd /
  local mounted
  findmnt -rn -o TARGET | grep -F "$work" | sort -r | while read -r mounted; do
    printf -v mounted '%b' "$mounted" # findmnt writes \x20 for a space
    detach "$mounted"
  done
  wait_for_daemon "$work" || status=1
  rm -rf --one-file-system "$work"
  exit $status
}
trap cleanup EXIT
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND" >&2' ERR
trap 'exit 130' INT TERM

detach() {
  if is_root; then umount -l "$1"; else fusermount3 -uz "$1"; fi
}
# Process ids of the daemons that were started on anything below a folder. By the command line: a
# daemon that cannot be dumped hides the rest from an ordinary user.
daemons_of() {
  local process words
  for process in /proc/[0-9]*; do
    mapfile -d '' words 2>/dev/null <"$process/cmdline" || continue
    case ${words[0]-} in mount.nacre | */mount.nacre) ;; *) continue ;; esac
    case "${words[*]}" in *"$1"*) echo "${process#/proc/}" ;; esac
  done
}
# Waits until no daemon works below a folder; ends those that do after 300 s, and says so.
wait_for_daemon() {
  local tries
  for tries in $(seq 3000); do
    [ -n "$(daemons_of "$1")" ] || return 0
    sleep 0.1
  done
  echo "FAILED: daemons still running after 300 s, killed: $(daemons_of "$1" | tr '\n' ' ')" >&2
  kill -9 $(daemons_of "$1")
  return 1
}

# The lowest cost that a passphrase may have: tests make many volumes.
cheap_kdf=(--kdf-memory 8192 --kdf-time 1)
make_volume() {
  local wanted
  read -ra wanted <<<"${NACRE_MKFS_OPTIONS-}"
  "$NACRE_BIN/mkfs.nacre" --passphrase-file "$passphrase_file" "${cheap_kdf[@]}" \
    ${wanted[@]+"${wanted[@]}"} "$@" "$volume" \
    >"$work/mkfs.log" 2>&1 || fail "mkfs.nacre: $(cat "$work/mkfs.log")"
}
# mount_volume [-o OPTIONS]
mount_volume() {
  timeout 600 "$NACRE_BIN/mount.nacre" --passphrase-file "$passphrase_file" "$@" "$volume" "$mnt" \
    >"$work/mount.log" 2>&1 || fail "mount.nacre: $(cat "$work/mount.log")"
  mountpoint -q "$mnt" || fail "mount.nacre returned 0, but nothing is mounted"
}
unmount_volume() {
  timeout 600 "$NACRE_BIN/nacre" umount "$mnt" >"$work/umount.log" 2>&1 ||
    fail "nacre umount: $(cat "$work/umount.log")"
  ! mountpoint -q "$mnt" || fail "nacre umount returned 0, but the volume is still mounted"
}
remount() {
  unmount_volume
  mount_volume "$@"
}
# Every record authenticated, decompressed and compared with the maps.
check_volume() {
  timeout 600 "$NACRE_BIN/fsck.nacre" --deep --passphrase-file "$passphrase_file" "$volume" \
    >"$work/fsck.log" 2>&1 || fail "fsck.nacre --deep ended with $?: $(cat "$work/fsck.log")"
}
# Ends a test that went well: unmounted, checked.
finish() {
  unmount_volume
  check_volume
}

# Everything about a tree that must survive: type, mode, owner, links, size, target, times, content.
manifest() {
  (
    cd "$1"
    # Size and link count of a directory are each filesystem's own.
    find . -type d -printf '%p\t%y %m %U %G %T@\n' -o \
      -printf '%p\t%y %m %U %G %n %s %l %T@\n' | sort
    find . -type f -print0 | sort -z | xargs -0 -r sha256sum
  )
}
same_tree() {
  manifest "$1" >"$work/manifest.a"
  manifest "$2" >"$work/manifest.b"
  cmp -s "$work/manifest.a" "$work/manifest.b" || {
    diff "$work/manifest.a" "$work/manifest.b" | head -n 12 | cut -c 1-160 || true
    fail "$1 and $2 differ"
  }
}
