#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The files of the corpus (text, images, databases, programs) come back as they were, under each
# codec, and all but the incompressible take less room than plain.
. "$(dirname "$0")/../support/mount_harness.sh"

ls "$corpus"/*.zip >/dev/null 2>&1 || skip "there is no corpus beside the checkout ($corpus)"

mkdir "$work/plain"
for archive in "$corpus"/*.zip; do
  unzip -q -d "$work/plain" "$archive"
done
[ "$(find "$work/plain" -type f | wc -l)" = 7 ] || fail "the corpus should hold seven files"
(cd "$work/plain" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$work/sums"
plain_bytes=$(du -sb "$work/plain" | cut -f1)

for codec in none lz77 zstd; do
  volume=$work/volume-$codec
  make_volume --codec $codec
  mount_volume
  cp -a "$work/plain/." "$mnt/"
  (cd "$mnt" && sha256sum --quiet -c "$work/sums") || fail "$codec: changed at once"
  remount
  (cd "$mnt" && sha256sum --quiet -c "$work/sums") || fail "$codec: changed after a new mount"
  # Read from the middle, across chunk ends, in odd pieces.
  for file in "$work"/plain/*; do
    for skip in 1 65535 131073 3000001; do
      cmp -s <(tail -c +$skip "$file" | head -c 70001) \
        <(tail -c +$skip "$mnt/$(basename "$file")" | head -c 70001) ||
        fail "$codec: $(basename "$file") differs from byte $skip"
    done
  done
  finish
  stored_bytes=$(du -sb "$volume/segments" | cut -f1)
  echo "$codec: $plain_bytes bytes are stored in $stored_bytes"
  if [ $codec != none ]; then
    [ "$stored_bytes" -lt $((plain_bytes * 7 / 10)) ] || fail "$codec hardly compressed the corpus"
  fi
done
