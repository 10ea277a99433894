#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre key remove --revoke, of a volume that is mounted and of one that is not: whoever was removed,
# by passphrase or RSA key, opens the volume no more, neither as it is nor with the keyring of then
# put back; whoever stays opens it, and no passphrase's MAC is missing once it was used again.
. "$(dirname "$0")/command_harness.sh"
needs_mounts
command -v openssl >/dev/null || { echo "skipped: $test_name: there is no openssl(1)"; exit 77; }

m=$work/mnt
mkdir "$m"
printf 'second passphrase\n' >"$work/second"
openssl genrsa -out "$work/ann.pem" 2048 2>/dev/null
openssl pkey -in "$work/ann.pem" -pubout -out "$work/ann.pub"
head -c 3000000 /dev/urandom >"$work/before"
head -c 1000000 /dev/urandom >"$work/since"
state() { nacre key status --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["rotation"])'; }
mount_volume() { expect 0 "${2:-}" mount.nacre "${secret[@]}" "$1" "$m"; }
# Opened by neither: keyring list (the keyring alone), check, mount.
refused() {  # VOLUME SECRET…
  local v=$1
  shift
  expect 16 'wrong key' nacre key list "$v" "$@"
  expect 16 'wrong key' fsck.nacre "$v" "$@"
  expect 16 'wrong key' mount.nacre -o ro "$@" "$v" "$m"
}

revoke() {  # mounted|offline WHO SECRET…
  local how=$1 who=$2 v=$work/$1-$2 where=$work/$1-$2
  shift 2
  make_volume "$v"
  expect 0 'Added' nacre key add "$v" --recipient "$work/ann.pub" --label ann "${secret[@]}"
  expect 0 'Added' nacre key add "$v" "${cheap[@]}" --new-passphrase-file "$work/second" --label laptop "${secret[@]}"
  expect 0 '' fsck.nacre "$v" "$@"
  cp "$v/keyring" "$work/keyring.old"
  mount_volume "$v"
  cp "$work/before" "$m/before"
  if [ "$how" = mounted ]; then where=$m; else expect 0 '' nacre umount "$m"; fi

  expect 0 'Removed.*(has begun|sealed under a new key)' nacre key remove --revoke "$where" "$who" "${secret[@]}"
  for _ in $(seq 3000); do [ "$(state "$where")" = none ] && break; sleep 0.1; done
  [ "$(state "$where")" = none ] || failed "$how: the rotation does not end: $(nacre key status "$where")"
  [ "$how" = mounted ] || mount_volume "$v"
  cp "$work/since" "$m/since"
  expect 0 '' nacre key status --verify "$m"
  expect 0 '' nacre umount "$m"

  refused "$v" "$@"
  # Who stays opens all of it; the MAC of his passphrase was made when he mounted it for writing.
  expect 0 '' fsck.nacre --deep "$v" "${secret[@]}"
  mount_volume "$v"
  cmp "$work/before" "$m/before" && cmp "$work/since" "$m/since" || failed "$how: other content"
  expect 0 '' nacre umount "$m"

  # The keyring of then, put back.
  cp "$v/keyring" "$work/keyring.now"
  cp "$work/keyring.old" "$v/keyring"
  cp "$work/keyring.old" "$v/keyring.copy"
  expect 4 'tampered' fsck.nacre "$v" "$@"
  expect 4 'tampered' fsck.nacre "$v" "${secret[@]}"
  expect 4 'tampered' mount.nacre -o ro "$@" "$v" "$m"
  cp "$work/keyring.now" "$v/keyring"
  cp "$work/keyring.now" "$v/keyring.copy"
  expect 0 '' fsck.nacre "$v" "${secret[@]}"
}
revoke offline ann --identity "$work/ann.pem"
revoke offline laptop --passphrase-file "$work/second"
revoke mounted ann --identity "$work/ann.pem"
revoke mounted laptop --passphrase-file "$work/second"

# A rotation that is under way made its new key for ann, too. So one that was interrupted is not all
# of a revocation: her key and the keyring of between open nothing in the end. Beside one that runs
# nothing is changed, and without --revoke it is said what is still to be done.
v=$work/between
make_volume "$v"
expect 0 'Added' nacre key add "$v" --recipient "$work/ann.pub" --label ann "${secret[@]}"
mount_volume "$v"
head -c 6000000 /dev/urandom >"$m/noise"
expect 0 'has begun.*new fingerprint +[0-9a-f]{64}' nacre key rotate "$m" --rate 64K --no-wait
expect 0 'paused' nacre key rotate --pause "$m"
for where in "$m" "$v"; do
  expect 32 'revoke: a rotation is under way.*nothing was changed.*--resume' \
    nacre key remove --revoke "$where" ann "${secret[@]}"
done
expect 0 ' ann' nacre key list "$v" --identity "$work/ann.pem"
expect 0 'Added' nacre key add "$v" "${cheap[@]}" --new-passphrase-file "$work/second" --label laptop "${secret[@]}"
expect 0 'made its new key for that secret too: when it is done, run .nacre key rotate. once more' \
  nacre key remove "$m" laptop "${secret[@]}"
expect 0 '' nacre umount "$m"
cp "$v/keyring" "$work/keyring.between"
expect 0 'ann' nacre key list "$v" --identity "$work/ann.pem"
expect 0 'interrupted goes on, and another one follows it.*new key .epoch 3.*new fingerprint' \
  nacre key remove --revoke "$v" ann "${secret[@]}"
refused "$v" --identity "$work/ann.pem"
expect 0 'nothing is left' nacre key status --verify "$v"
cp "$v/keyring" "$work/keyring.now"
cp "$work/keyring.between" "$v/keyring"
cp "$work/keyring.between" "$v/keyring.copy"
expect 4 'tampered' nacre key list "$v" --identity "$work/ann.pem"
cp "$work/keyring.now" "$v/keyring"
cp "$work/keyring.now" "$v/keyring.copy"
expect 0 clean fsck.nacre --deep "$v" "${secret[@]}"

# Who knows the volume by its fingerprint of before is told the one of now, which list and rotate show.
cp "$known" "$work/known.before"
shown=$(nacre key rotate "$v" "${secret[@]}" 2>/dev/null | sed -n "s/^  the volume's new fingerprint  //p")
cp "$work/known.before" "$known"
expect 8 "its key has another fingerprint, $shown\\." nacre key list "$v" "${secret[@]}"
sed -i "\\,^$v ,d" "$known"
expect 0 "Its fingerprint is $shown.*fingerprint of the volume  $shown" nacre key list "$v" "${secret[@]}"
expect 0 "\"volume_fingerprint\": \"$shown\"" nacre key list --json "$v" "${secret[@]}"
[ ${#shown} = 64 ] || failed "rotate shows the fingerprint '$shown'"

# Somebody else changes the volume key: he cannot make a passphrase's MAC. Until it is made, the
# passphrase opens nothing on a machine that does not know the volume; mounting for writing makes it,
# reading does not.
v=$work/refreshed
make_volume "$v"
expect 0 'Added' nacre key add "$v" --recipient "$work/ann.pub" --label ann "${secret[@]}"
is_refused() {  # to fsck on a machine of that kind
  local got=0
  rm -rf "$work/stranger"
  XDG_CONFIG_HOME=$work/stranger fsck.nacre "$v" "${secret[@]}" </dev/null >"$work/stranger.log" 2>&1 || got=$?
  [ $got = 0 ] || [ $got = 8 ] || failed "fsck: $(cat "$work/stranger.log")"
  [ $got = 8 ] && grep -q 'the key of .* was changed .*does not know the volume.*--fingerprint' "$work/stranger.log"
}
generation() { nacre key list --json "$v" | python3 -c 'import json, sys; print(json.load(sys.stdin)["generation"])'; }
is_refused && failed 'refused although the MAC is there'
expect 0 'sealed under a new key' nacre key rotate "$v" --identity "$work/ann.pem"
is_refused || failed 'opened although the MAC is missing'
expect 0 '' mount.nacre -o ro "${secret[@]}" "$v" "$m"
expect 0 '' nacre umount "$m"
is_refused || failed 'mounted for reading only, and the keyring changed'
before=$(generation)
expect 0 '' mount.nacre --identity "$work/ann.pem" "$v" "$m"
expect 0 '' nacre umount "$m"
[ "$(generation)" = "$before" ] || failed "another recipient's mount changed the keyring"
mount_volume "$v"
expect 0 '' nacre umount "$m"
is_refused && failed 'the MAC was not made by the mount'
[ "$(generation)" = $((before + 1)) ] || failed 'the mount made more than one keyring'
cmp "$v/keyring" "$v/keyring.copy" || failed 'the copies differ'
mount_volume "$v"
expect 0 '' nacre umount "$m"
[ "$(generation)" = $((before + 1)) ] || failed 'each mount makes a keyring'
verdict
