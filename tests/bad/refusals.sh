#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is wrong outside Nacre's hands gets a clear error and the right exit status, and costs
# nothing: afterwards the volume still opens.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@" # /dev and /usr/bin are changed below, for this test alone
fi
. "$(dirname "$0")/../support/mount_harness.sh"

# refused WHAT STATUS WORDS COMMAND…: ends with STATUS, says WORDS (an extended regular expression).
refused() {
  local what=$1 status=$2 words=$3 got=0
  shift 3
  local limit=(timeout 600)
  ! declare -F "$1" >/dev/null || limit=()
  "${limit[@]}" "$@" >"$work/said" 2>&1 </dev/null || got=$?
  [ $got = "$status" ] || fail "$what: status $got instead of $status: $(cat "$work/said")"
  grep -qiE -- "$words" "$work/said" || fail "$what: nothing about '$words': $(cat "$work/said")"
  ! mountpoint -q "$mnt" || fail "$what: refused, yet mounted"
}
with_passphrase() { "$NACRE_BIN/$1" --passphrase-file "$passphrase_file" "${@:2}"; }
export -f with_passphrase
export NACRE_BIN passphrase_file
mount_it() { refused "$1" "$2" "$3" "$NACRE_BIN/mount.nacre" --passphrase-file \
  "${4:-$passphrase_file}" "${5:-$volume}" "$mnt"; }

make_volume
mount_volume
echo kept >"$mnt/file"
head -c 300000 /dev/urandom >"$mnt/large"
large=$(sha256sum <"$mnt/large")

# Mounted already: who holds it.
holder=$(daemons_of "$volume")
mkdir "$work/mnt2"
refused_busy() {
  local got=0
  timeout 600 "$@" >"$work/said" 2>&1 </dev/null || got=$?
  [ $got = 32 ] || fail "$1 on a mounted volume: status $got: $(cat "$work/said")"
  grep -qwE "$holder" "$work/said" || fail "$1 does not name process $holder: $(cat "$work/said")"
}
refused_busy "$NACRE_BIN/mount.nacre" --passphrase-file "$passphrase_file" "$volume" "$work/mnt2"
refused_busy "$NACRE_BIN/fsck.nacre" --passphrase-file "$passphrase_file" "$volume"
[ "$(cat "$mnt/file")" = kept ] || fail "the holder was disturbed"
unmount_volume

# Keys.
echo wrong >"$work/wrong"
mount_it "a wrong passphrase" 16 'passphrase' "$work/wrong"
refused "fsck with a wrong passphrase" 16 'passphrase' "$NACRE_BIN/fsck.nacre" --deep \
  --passphrase-file "$work/wrong" "$volume"
: >"$work/empty"
mount_it "an empty passphrase" 2 'empty' "$work/empty"
refused "no passphrase and no terminal" 2 'passphrase' setsid "$NACRE_BIN/mount.nacre" \
  "$volume" "$mnt"
openssl genrsa -out "$work/other.pem" 2048 2>/dev/null
refused "another's key" 16 'key' "$NACRE_BIN/mount.nacre" --identity "$work/other.pem" \
  "$volume" "$mnt"

# Not a volume, or not one for this version.
mkdir "$work/nothing"
mount_it "an empty folder" 8 "$work/nothing" "$passphrase_file" "$work/nothing"
mount_it "no folder" 8 "$work/nowhere" "$passphrase_file" "$work/nowhere"
mount_it "a file" 8 "passphrase" "$passphrase_file" "$passphrase_file"
refused "mkfs over a volume" 8 "$volume" "$NACRE_BIN/mkfs.nacre" --passphrase-file \
  "$passphrase_file" "$volume"
refused "mkfs over files" 8 "$HOME/.." "$NACRE_BIN/mkfs.nacre" --passphrase-file \
  "$passphrase_file" "$HOME/.."
cp -a "$volume" "$work/newer"
python3 - "$work/newer" <<'CODE'
import json, sys, zlib
for name in ("superblock", "superblock.copy"):
    path = f"{sys.argv[1]}/{name}"
    fields = json.load(open(path))
    fields["version"] = 999
    inner = {k: v for k, v in fields.items() if k != "crc32"}
    dump = json.dumps(inner, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fields["crc32"] = f"{zlib.crc32(dump.encode()):08x}"
    open(path, "w").write(json.dumps(fields, sort_keys=True, indent=2, ensure_ascii=False) + "\n")
CODE
mount_it "a newer format" 8 'version 999' "$passphrase_file" "$work/newer"

# Another volume, made by somebody else, in the place of a known one.
mv "$volume" "$work/aside"
mkdir "$work/elsewhere"
touch "$work/elsewhere/.profile"  # in an empty home no list is kept
HOME=$work/elsewhere make_volume
mount_it "a volume whose fingerprint changed" 8 'known_volumes'
rm -rf "$volume"
mv "$work/aside" "$volume"

# The mount point.
touch "$mnt/in-the-way"
mount_it "a mount point that is not empty" 8 "$mnt"
rm "$mnt/in-the-way"
refused "no mount point" 8 "$work/no-mnt" "$NACRE_BIN/mount.nacre" --passphrase-file \
  "$passphrase_file" "$volume" "$work/no-mnt"
refused "an unknown option" 2 'no_such_option' "$NACRE_BIN/mount.nacre" --passphrase-file \
  "$passphrase_file" -o no_such_option "$volume" "$mnt"

# A segment that is gone: what was in it is EIO, the rest is there, fsck names it.
cp -a "$volume" "$work/whole"
rm "$(find "$volume/segments" -name '*.seg' -size +200k | head -n 1)"
got=0
with_passphrase fsck.nacre --deep "$volume" >"$work/said" 2>&1 || got=$?
[ $got = 4 ] && grep -qE '[0-9]+\.seg' "$work/said" ||
  fail "fsck of a missing segment: status $got: $(cat "$work/said")"
if with_passphrase mount.nacre "$volume" "$mnt" >"$work/said" 2>&1; then
  if cat "$mnt/large" >/dev/null 2>"$work/said"; then fail "a missing segment was read"; fi
  grep -q 'Input/output error' "$work/said" || fail "a missing segment: $(cat "$work/said")"
  unmount_volume
else
  grep -qE '[0-9]+\.seg' "$work/said" || fail "refused without a name: $(cat "$work/said")"
fi
rm -rf "$volume"
mv "$work/whole" "$volume"

# The machine.
if is_root; then
  mount --bind "$volume" "$volume"
  mount -o remount,bind,ro "$volume"
  mount_it "a read-only backing folder" 8 'read-only'
  mount_volume -o ro
  [ "$(sha256sum <"$mnt/large")" = "$large" ] || fail "read-only: other bytes"
  if touch "$mnt/new" 2>/dev/null; then fail "a read-only mount took a file"; fi
  unmount_volume
  umount "$volume"

  mkdir "$view/dev"
  for node in null zero urandom random tty; do
    touch "$view/dev/$node"
    mount --bind /dev/$node "$view/dev/$node"
  done
  mount --rbind "$view/dev" /dev
  mount_it "no /dev/fuse" 8 '/dev/fuse'
  umount -l /dev

  cp -a "$volume" "$work/users" && chown -R $user_id "$work/users"
  mkdir "$work/user-mnt" "$work/user-home"
  chown $user_id "$work/user-mnt" "$work/user-home"
  touch "$view/nothing"
  mount --bind "$view/nothing" /usr/bin/fusermount3
  user_home=$work/user-home
  refused "no fusermount3" 8 'fusermount3' as_user "$user_bin/mount.nacre" --passphrase-file \
    "$passphrase_file" "$work/users" "$work/user-mnt"
  umount /usr/bin/fusermount3
else
  skip_part "read-only backing, no /dev/fuse, no fusermount3" "needs root to arrange"
fi

# Nothing was lost on the way.
mount_volume
[ "$(cat "$mnt/file")" = kept ] && [ "$(sha256sum <"$mnt/large")" = "$large" ] ||
  fail "the volume changed"
finish
