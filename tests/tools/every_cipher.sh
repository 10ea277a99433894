#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every cipher suite, in a volume that is mounted, filled, remounted and checked. Legacy ciphers: only
# for who asks twice, and with a warning at every use.
. "$(dirname "$0")/command_harness.sh"
needs_mounts

suites='aes-256-gcm aes-192-gcm aes-128-gcm aes-256-ctr aes-192-ctr aes-128-ctr aes-256-cbc
  aes-192-cbc aes-128-cbc'
legacy_suites='des-ede3-cbc des-cbc'
help=$(mkfs.nacre --help-all | tr -s ' \n' ' ')
for suite in $suites $legacy_suites; do
  grep -qw -- "$suite" <<<"$help" || failed "mkfs.nacre --help does not name $suite"
done
for codec in none rle lz77 huffman gdeflate lzw zstd auto; do
  grep -qw -- "--codec.*$codec.*--level" <<<"$help" || failed "mkfs.nacre --help does not name $codec"
done

# Bytes that compress, that do not, and none; a hole; sizes around a chunk of 64 KiB.
tree=$work/tree
mkdir -p "$tree/deep/er"
for ((line = 0; line < 20000; ++line)); do echo "line $line of a text"; done >"$tree/text"
head -c 1000001 /dev/urandom >"$tree/deep/random"
for size in 0 1 65535 65536 65537; do head -c $size "$tree/deep/random" >"$tree/deep/er/$size"; done
truncate -s 3000000 "$tree/hole"
echo end >>"$tree/hole"
ln -s deep/random "$tree/link"

v=$work/volume m=$work/mnt log=$work/log
mkdir "$m"
no_warning='^$'
# fill_and_check WORDS: what everybody who uses the volume is told, '^$' for nothing.
fill_and_check() {
  local words=$1
  rm -f "$log"
  expect 0 "$words" mount.nacre "${secret[@]}" --log-file "$log" "$v" "$m"
  [ "$words" = '^$' ] || check "no warning in the log" grep -qE "$words" "$log"
  cp -a "$tree" "$m/tree" || failed "cannot be filled"
  # A change within a chunk is a patch.
  printf changed | dd of="$m/tree/deep/random" bs=1 seek=500000 conv=notrunc status=none
  expect 0 '^$' nacre umount "$m"
  expect 0 "$words" mount.nacre "${secret[@]}" "$v" "$m"
  check "the changed bytes are gone" \
    [ "$(dd if="$m/tree/deep/random" bs=1 skip=500000 count=7 status=none)" = changed ]
  dd if="$tree/deep/random" bs=1 skip=500000 count=7 status=none |
    dd of="$m/tree/deep/random" bs=1 seek=500000 conv=notrunc status=none
  expect 0 '^$' diff -r --no-dereference "$tree" "$m/tree"
  expect 0 '^$' nacre umount "$m"
  expect 0 'clean' fsck.nacre --deep "${secret[@]}" "$v"
  [ "$words" = '^$' ] || expect 0 "$words" fsck.nacre "${secret[@]}" "$v"
  rm -rf "$v"
}

for suite in $suites; do
  expect 0 "cipher +$suite" mkfs.nacre "${secret[@]}" "${cheap[@]}" --cipher "$suite" "$v"
  fill_and_check "$no_warning"
done
for suite in $legacy_suites; do
  words="warning: $v is sealed with $suite, a legacy cipher"
  expect 2 "$suite.*--allow-legacy-cipher" \
    mkfs.nacre "${secret[@]}" "${cheap[@]}" --cipher "$suite" "$v"
  [ ! -e "$v" ] || failed "$suite without consent left $v"
  expect 0 "$words" mkfs.nacre "${secret[@]}" "${cheap[@]}" --cipher "$suite" \
    --allow-legacy-cipher "$v"
  fill_and_check "$words"
done

# --- Rotated to a legacy suite, unmounted, and back, mounted.
words="warning: $v is sealed with des-cbc, a legacy cipher"
expect 0 'cipher +aes-256-gcm' mkfs.nacre "${secret[@]}" "${cheap[@]}" --cipher aes-256-gcm "$v"
expect 0 '^$' mount.nacre "${secret[@]}" "$v" "$m"
cp -a "$tree" "$m/tree" || failed "cannot be filled"
expect 2 'des-cbc.*--allow-legacy-cipher' nacre key rotate --cipher des-cbc "$m"
expect 0 '^$' nacre umount "$m"
expect 2 'des-cbc.*--allow-legacy-cipher' nacre key rotate "${secret[@]}" --cipher des-cbc "$v"
expect 0 '^[^w].*clean' fsck.nacre "${secret[@]}" "$v"
expect 0 "warning: $v will be sealed with des-cbc, a legacy cipher.*sealed under a new key" \
  nacre key rotate "${secret[@]}" --cipher des-cbc --allow-legacy-cipher "$v"
expect 0 "$words.*clean" fsck.nacre --deep "${secret[@]}" "$v"
expect 0 "$words" mount.nacre "${secret[@]}" "$v" "$m"
expect 0 '^$' diff -r --no-dereference "$tree" "$m/tree"
expect 0 'everything is sealed under a new key' nacre key rotate --cipher aes-256-gcm "$m"
expect 0 '^$' diff -r --no-dereference "$tree" "$m/tree"
expect 0 '^$' nacre umount "$m"
expect 0 '^[^w].*clean' fsck.nacre --deep "${secret[@]}" "$v"
expect 0 '^$' mount.nacre "${secret[@]}" "$v" "$m"
expect 0 '^$' nacre umount "$m"

verdict
