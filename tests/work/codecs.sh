#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A volume of every codec, at its fastest and its smallest level where it has levels, keeps text,
# programs, noise, zeros and odd ends as they were, and passes fsck.nacre --deep.
. "$(dirname "$0")/../support/mount_harness.sh"

mkdir "$work/plain"
head -c 500001 < <(cat "$source_root"/gpu_engine/*/*.cpp "$source_root"/docs/*.md) >"$work/plain/text"
head -c 1100000 "$NACRE_BIN/mkfs.nacre" >"$work/plain/program"
head -c 300000 /dev/urandom >"$work/plain/noise"
head -c 200000 /dev/zero >"$work/plain/zeros"
for size in 0 1 31 32 33 4095 65535 65536 65537; do
  head -c $size "$work/plain/text" >"$work/plain/text-$size"
done
# A chunk of noise with a little text in it, and one the other way round.
{ head -c 60000 /dev/urandom; head -c 80000 "$work/plain/text"; head -c 5000 /dev/urandom; } \
  >"$work/plain/mixed"
text_bytes=$(stat -c %s "$work/plain/text")

# check CODEC LEVEL CHUNK_SIZE PERCENT: the text takes less than so much of its size.
check() {
  local codec=$1 level=$2 chunk_size=$3 percent=$4 what stored_bytes
  what="$codec, level $level, chunks of $chunk_size"
  volume=$work/volume-$codec-$level-$chunk_size
  make_volume --codec "$codec" --level "$level" --chunk-size "$chunk_size"
  mount_volume
  cp "$work/plain/text" "$mnt/"
  remount
  stored_bytes=$(du -sb "$volume/segments" | cut -f1)
  [ "$stored_bytes" -lt $((text_bytes * percent / 100)) ] ||
    fail "$what: $text_bytes bytes of text are stored in $stored_bytes"
  cp "$work/plain/"* "$mnt/"
  # Into the middle of a chunk, and over its end.
  printf 'patched' | dd of="$mnt/text" bs=1 seek=65533 conv=notrunc status=none
  remount
  for file in "$work/plain/"*; do
    if [ "$file" = "$work/plain/text" ]; then
      cmp -s <(head -c 65533 "$file" && printf 'patched' && tail -c +65541 "$file") "$mnt/text" ||
        fail "$what: text differs"
    else
      cmp "$file" "$mnt/$(basename "$file")" || fail "$what: $(basename "$file") differs"
    fi
  done
  finish
  echo "$what: $text_bytes bytes of text are stored in $stored_bytes"
}

check none 0 64K 105
check rle 0 64K 101
check lz77 1 64K 75
check lz77 9 64K 50
check huffman 0 64K 75
check gdeflate 0 64K 45
check gdeflate 1 4K 70
check gdeflate 9 1M 40
check lzw 0 64K 70
check zstd 0 64K 45
check zstd 9 64K 40
check auto 0 64K 45
check auto 1 4K 70
check auto 9 1M 40
