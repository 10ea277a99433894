#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre key rotate and nacre key status by hand: what they say, which options go together, pausing,
# another rate, cipher and codec, mounted and not, and a rotation that was interrupted.
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume m=$work/mnt
mkdir "$m"
make_volume "$v"
field() { nacre key status --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"; }
superblock() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/superblock"))[sys.argv[2]])' "$v" "$1"; }
head -c 6000000 /dev/urandom >"$work/noise"
yes 'a line that is in it very often' | head -c 2000000 >"$work/text"
begin_slowly() {
  expect 0 "has begun; 'nacre key status $m'" nacre key rotate "$m" --rate 64K --no-wait
  for _ in $(seq 3000); do [ "$(field "$m" stage)" = records ] && break; sleep 0.1; done
}
wait_for_end() {
  for _ in $(seq 3000); do [ "$(field "$1" rotation)" = none ] && return; sleep 0.1; done
  failed "the rotation does not end: $(nacre key status "$1")"
}

# --- What goes with what.
expect 2 'unknown cipher suite .rot13.; use one of aes-256-gcm' nacre key rotate "$v" --cipher rot13
expect 2 'unknown codec .pkzip.; use one of' nacre key rotate "$v" --codec pkzip
expect 2 'is not a size' nacre key rotate "$v" --rate fast
expect 2 'level goes with --codec' nacre key rotate "$v" --level 3
expect 2 'legacy ciphers.*--allow-legacy-cipher' nacre key rotate "$v" --cipher des-cbc
for options in '--pause --resume' '--pause --rate 1M' '--pause --cipher aes-128-gcm' '--resume --codec zstd'; do
  # shellcheck disable=SC2086
  expect 2 'together' nacre key rotate "$v" $options
done
expect 2 "no-wait is for mounted volumes, and $v is not" nacre key rotate "$v" --no-wait "${secret[@]}"
expect 8 "$v is not mounted, so nothing runs there" nacre key rotate "$v" --pause
expect 16 'wrong key' nacre key rotate "$v" --passphrase-file "$work/wrong"
expect 0 '^no rotation is under way; epoch 1' nacre key status "$v"
[ "$(field "$v" rotation)" = none ] || failed "something refused began a rotation"

# --- Not mounted: another cipher, and another codec on the way.
mount.nacre "${secret[@]}" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
cp "$work/noise" "$work/text" "$m"
expect 0 '^$' nacre umount "$m"
before=$(du -sb "$v/segments" | cut -f1)
expect 0 'everything is sealed under a new key .epoch 2.; the older ones are gone' \
  nacre key rotate "$v" --cipher aes-128-ctr --codec none "${secret[@]}"
[ "$(superblock cipher)" = aes-128-ctr ] || failed "the cipher is $(superblock cipher)"
[ "$(superblock codec)" = none ] || failed "the codec is $(superblock codec)"
[ "$(du -sb "$v/segments" | cut -f1)" -gt $((before + 1000000)) ] || failed "nothing was compressed anew"
expect 0 'nothing is left under an older epoch' nacre key status --verify "$v"
expect 0 clean fsck.nacre --deep "${secret[@]}" "$v"

# --- Mounted: a second one is refused at once, whether the first runs or is paused.
mount.nacre "${secret[@]}" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
expect 2 'engine is for volumes that are not mounted' nacre key rotate "$m" --engine cpu
expect 8 'no rotation is under way' nacre key rotate --pause "$m"
expect 8 'no rotation is under way' nacre key rotate --resume "$m"
begin_slowly
[ "$(field "$m" rotation)" = running ] || failed "status says $(field "$m" rotation)"
expect 0 'rotation to epoch 3: running, records.* of .*%' nacre key status "$m"
for _ in $(seq 3000); do nacre key status --json "$m" | grep -q '"eta_seconds": [0-9]' && break; sleep 0.1; done
expect 0 '[KM]iB/s, about [0-9]+ s left' nacre key status "$m"
expect 32 'under way already: .nacre key status. tells how far' nacre key rotate "$m"
expect 0 'rotation to epoch 3: paused' nacre key rotate --pause "$m"
[ "$(field "$m" rotation)" = paused ] || failed "status says $(field "$m" rotation)"
expect 32 'is paused: .nacre key rotate --resume. lets it go on' nacre key rotate "$m"
expect 8 'still under an older epoch; the first: ' nacre key status --verify "$m"
expect 0 '^$' nacre umount "$m"

# --- Interrupted: said so, not silently another one; it stays paused over a mount.
expect 0 'rotation to epoch 3: paused.*goes on when the volume is mounted .after a pause: by .*or by .nacre key rotate' \
  nacre key status "$v"
expect 8 'still under an older epoch' nacre key status --verify "$v"
expect 32 'a rotation that was interrupted has to be done before' \
  nacre key rotate "$v" --cipher aes-256-gcm "${secret[@]}"
mount.nacre "${secret[@]}" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
[ "$(field "$m" rotation)" = paused ] || failed "a mount goes on although it was paused"
# --- Another rate counts from now on: at the first one it would take minutes.
expect 0 'rotation to epoch 3' nacre key rotate --resume "$m"
expect 0 'rotation to epoch 3|no rotation' nacre key rotate --resume --rate 1G "$m"
wait_for_end "$m"
expect 0 'nothing is left under an older epoch' nacre key status --verify "$m"
begin_slowly
expect 0 '^$' nacre umount "$m"
expect 0 "$v: a rotation that was interrupted goes on.*new key .epoch 4." nacre key rotate "$v" "${secret[@]}"
expect 0 clean fsck.nacre --deep "${secret[@]}" "$v"
mount.nacre "${secret[@]}" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
cmp "$work/noise" "$m/noise" && cmp "$work/text" "$m/text" || failed 'other content'
expect 0 '^$' nacre umount "$m"
# --- No proof where damage hides an epoch: of a record, of a segment's header, of a table's.
largest() { find "$v" -name "$1" -printf '%s %p\n' | sort -n | sed -n '$s/^[0-9]* //p'; }
for place in "$(largest '*.seg') 90000" "$(largest '*.seg') 5" "$(largest '*.sst') 5"; do
  read -r file offset <<<"$place"
  cp "$file" "$work/sound"
  printf '\377\376\375\374' | dd of="$file" bs=1 seek="$offset" conv=notrunc status=none
  expect 4 '1 places are damaged.*nothing else is left under an older epoch' nacre key status --verify "$v"
  expect 4 '"damaged_place_count": 1' nacre key status --verify --json "$v"
  cp "$work/sound" "$file"
done
expect 0 'nothing is left' nacre key status --verify "$v"
# --- A crash behind the new keyring, before its fingerprint counts alone: known_volumes has either key. An RSA
# key vouches for neither.
if command -v openssl >/dev/null; then
  openssl genrsa -out "$work/ann.pem" 2048 2>/dev/null
  openssl pkey -in "$work/ann.pem" -pubout -out "$work/ann.pub"
  ann=(--identity "$work/ann.pem") other=$work/other
  expect 0 'Made a volume' mkfs.nacre --recipient "$work/ann.pub" "$other"
  line_of() { grep "^$other " "$known"; }
  older=$(line_of)
  cp -a "$other" "$work/kept"
  expect 0 'new key .epoch 2' nacre key rotate "$other" "${ann[@]}"
  newer=$(line_of)
  [ "$newer" != "$older" ] && ! grep -q next= <<<"$newer" || failed "the line after a rotation: $newer"
  set_line() { sed -i "s,^$other .*,$1," "$known"; }
  set_line "$older"
  expect 8 'holds another volume' fsck.nacre "${ann[@]}" "$other"
  set_line "$older next=$(cut -d' ' -f3 <<<"$newer")"
  expect 0 clean fsck.nacre "${ann[@]}" "$other"
  grep -q next= "$known" || failed 'a command that holds no lock for writing settled the key'
  mount.nacre "${ann[@]}" "$other" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
  expect 0 '^$' nacre umount "$m"
  [ "$(line_of)" = "$newer" ] || failed "the new key did not become the one that is known: $(line_of)"
  rm -r "$other"
  mv "$work/kept" "$other"
  forget_states
  set_line "$older next=$(cut -d' ' -f3 <<<"$newer")"
  mount.nacre "${ann[@]}" "$other" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
  expect 0 '^$' nacre umount "$m"
  [ "$(line_of)" = "$older" ] || failed "the key that never came is still known: $(line_of)"
else
  skip_part 'a crash behind the new keyring' 'there is no openssl(1)'
fi
verdict
