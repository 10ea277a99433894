#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the golden volumes: small volumes of one format version, which every later build must open byte
# for byte. They were made once and are committed; a later Nacre adds volumes and never replaces one.
#
#   NACRE_BIN=build/ci/bin tests/golden/make_golden.sh FOLDER [NAME…]
#
# Writes NAME.tar.xz, the volume, and NAME.list, what a mount of it showed (golden_tree.py list), to
# FOLDER. The passphrase is golden_passphrase. What a volume may lack (docs/FORMAT.md, "Files of a
# volume") is left out for its size: ballast, lock, RocksDB's LOG and
# OPTIONS, which are of no use to a reader. Needs /dev/fuse.
. "$(dirname "$0")/../support/mount_harness.sh"

out=$(realpath "${1:?usage: make_golden.sh FOLDER [NAME…]}")
shift
wanted=("$@")
golden=$(dirname "$(realpath "$0")")
cp "$golden/golden_passphrase" "$passphrase_file"

tree() { "$golden/golden_tree.py" "$@"; }
flush() { "$NACRE_BIN/nacre" sync "$mnt" >/dev/null; }
kill_daemon() { # as a crash does: what was synced lies in the log
  local daemon
  daemon=$(daemons_of "$volume")
  kill -9 $daemon
  umount -l "$mnt" 2>/dev/null || fusermount3 -uz "$mnt"
  wait_for_daemon "$volume"
}
# Held open and unlinked while the daemon is killed: a row of the table orphans.
hold_orphan() {
  exec 9>"$mnt/plain/orphan"
  printf 'nobody will name this again\n' >&9
  rm "$mnt/plain/orphan"
}

# The lives that a volume can have had. Each ends with $work/list, what its last mount showed.
change() {
  tree "$1" --bulk "$bulk" $few "$mnt"
  flush
}
show() { tree list "$mnt" >"$work/list"; }
closed() {
  mount_volume
  change first
  change second
  show
  unmount_volume
}
killed() { # every row is in the log
  mount_volume
  change first
  change second
  hold_orphan
  flush
  show
  kill_daemon
  exec 9>&-
}
closed_then_killed() { # rows are in tables and in the log
  closed
  mount_volume
  change third
  show
  kill_daemon
}
compacted_and_rotated() {
  closed
  "$NACRE_BIN/nacre" trim --passphrase-file "$passphrase_file" "$volume"
  "$NACRE_BIN/nacre" key rotate --passphrase-file "$passphrase_file" "$volume"
}
in_rotation() { # two epochs and two volume keys: paused before all was sealed anew
  mount_volume
  change first
  change second
  "$NACRE_BIN/nacre" key rotate --passphrase-file "$passphrase_file" --cipher aes-128-gcm --rate 4K \
    --no-wait "$mnt"
  "$NACRE_BIN/nacre" key rotate --pause "$mnt"
  grep -q previous_volume_key "$volume/keyring" || fail "the rotation was over before it was paused"
  change third
  show
  kill_daemon
}

# golden NAME LIFE BULK [--few] MKFS-OPTION…
golden() {
  local name=$1 life=$2
  bulk=$3 few=
  shift 3
  if [ "$1" = --few ]; then
    few=--few
    shift
  fi
  [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $name "* ]] || return 0
  rm -rf "$volume" "$HOME/.config"
  make_volume "$@"
  "$life"
  cp "$work/list" "$out/$name.list"
  tar -C "$volume" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=go= \
    --exclude=ballast --exclude=lock --exclude='db/LOG*' --exclude='db/OPTIONS-*' -c . |
    xz -9e >"$out/$name.tar.xz"
  "$golden/read_volume.py" list --passphrase-file "$passphrase_file" "$volume" | cmp - "$out/$name.list"
  check_volume
  echo "$name: $(stat -c %s "$out/$name.tar.xz") bytes"
}

golden gcm256_lz77_closed closed 12000 --cipher aes-256-gcm --codec lz77
golden gcm192_none_killed killed 2400 --few --cipher aes-192-gcm --codec none --chunk-size 4K
golden ctr256_zstd_killed killed 110000 --few --cipher aes-256-ctr --codec zstd --chunk-size 1M \
  --padding padme
golden ctr128_rle_killed closed_then_killed 9000 --few --cipher aes-128-ctr --codec rle --chunk-size 4K
golden cbc256_huffman_killed killed 4300 --few --cipher aes-256-cbc --codec huffman --chunk-size 4K
golden cbc128_gdeflate_killed killed 110000 --few --cipher aes-128-cbc --codec gdeflate --chunk-size 256K
golden des3_lzw_killed killed 80000 --few --cipher des-ede3-cbc --allow-legacy-cipher --codec lzw \
  --chunk-size 128K
golden des_auto_killed killed 9000 --few --cipher des-cbc --allow-legacy-cipher --codec auto --chunk-size 8K
golden ctr192_lz77_rotated compacted_and_rotated 9000 --few --cipher aes-192-ctr --codec lz77 \
  --chunk-size 4K
golden cbc192_zstd_in_rotation in_rotation 9000 --few --cipher aes-192-cbc --codec zstd --chunk-size 8K
