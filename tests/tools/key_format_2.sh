#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre key in a volume of format 2, where a passphrase needs no RSA key: what each command does with such
# recipients, mounted and not, and in which words it refuses what takes the passphrase itself.
. "$(dirname "$0")/command_harness.sh"
needs_mounts
command -v openssl >/dev/null || { echo "skipped: $test_name: there is no openssl(1)"; exit 77; }

v=$work/volume m=$work/mnt
mkdir "$m"
printf 'second passphrase\n' >"$work/second"
printf 'third passphrase\n' >"$work/third"
openssl genrsa -out "$work/ann.pem" 2048 2>/dev/null
openssl pkey -in "$work/ann.pem" -pubout -out "$work/ann.pub"
make_volume --format 2 "$v"
second=(--passphrase-file "$work/second")
# What the recipients in the keyring have of these fields.
with() { python3 -c 'import json, sys
print(sum(sys.argv[2] in recipient for recipient in json.load(open(sys.argv[1] + "/keyring"))["recipients"]))' "$v" "$1"; }
opens() { nacre key list "$@" "$v" >"$work/list.log" 2>&1; }
may_not_open() {
  local got=0
  nacre key list "$@" "$v" >"$work/list.log" 2>&1 || got=$?
  [ $got = 16 ]
}
mount_volume() { mount.nacre "$@" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"; }

# --- The volume, the list, and the changes of one recipient.
[ "$(with public_key) $(with sealed_volume_key)" = '0 1' ] || failed "mkfs.nacre made an RSA key"
expect 0 'passphrase .*no RSA key: a rotation of keys needs the passphrase itself' nacre key list "$v"
expect 0 '"key_pair": false' nacre key list --json "$v" "${secret[@]}"
change() {
  local where=$1 recovery
  expect 0 'Added passphrase .*the new passphrase has no RSA key.*--with-passphrase-file' nacre key add "$where" \
    --new-passphrase-file "$work/second" --label second "${cheap[@]}" "${secret[@]}"
  opens "${second[@]}" || failed "the added passphrase does not open it: $(cat "$work/list.log")"
  expect 0 'Changed passphrase .*second' nacre key passphrase "$where" "${second[@]}" \
    --new-passphrase-file "$work/third" "${cheap[@]}"
  may_not_open "${second[@]}" || failed 'the old passphrase opens it'
  opens --passphrase-file "$work/third" || failed 'the new passphrase does not open it'
  nacre key add "$where" --recovery "${secret[@]}" >"$work/recovery.log" 2>&1 || failed "$(cat "$work/recovery.log")"
  recovery=$(sed -n 's/^  \([0-9A-Z-]*-[0-9A-Z-]*\)$/\1/p' "$work/recovery.log")
  printf '%s\n' "$recovery" >"$work/recovery"
  opens --passphrase-file "$work/recovery" || failed 'the recovery key does not open it'
  expect 0 'Removed passphrase .*recovery key' nacre key remove "$where" 'recovery key' "${secret[@]}"
  may_not_open --passphrase-file "$work/recovery" || failed 'the removed recovery key opens it'
  expect 0 'Removed passphrase .*second' nacre key remove "$where" second "${secret[@]}"
  [ "$(with public_key) $(with sealed_volume_key)" = '0 1' ] || failed "not as before: $(cat "$v/keyring")"
}
change "$v"
mount_volume "${secret[@]}"
change "$m"

# --- Rotation of a mounted volume: the daemon has no passphrase.
expect 2 'there is no passphrase and no terminal' nacre key rotate "$m"
expect 16 'wrong key' nacre key rotate "$m" "${second[@]}"
expect 0 'epoch 2' nacre key rotate "$m" "${secret[@]}"
opens "${secret[@]}" || failed "after a rotation: $(cat "$work/list.log")"
expect 0 '' nacre umount "$m"
[ "$(with wrapped_volume_key)" = 0 ] || failed 'a volume key is wrapped with RSA'

# --- Every passphrase without an RSA key has a word in it.
expect 0 Added nacre key add "$v" --recipient "$work/ann.pub" "${secret[@]}"
expect 0 Added nacre key add "$v" --new-passphrase-file "$work/second" --label second "${cheap[@]}" "${secret[@]}"
before=$(cksum <"$v/keyring")
expect 8 'passphrase [0-9a-f]{16} .second. has no RSA key pair.*--with-passphrase-file' \
  nacre key rotate "$v" "${secret[@]}"
expect 8 'passphrase [0-9a-f]{16} .passphrase. has no RSA key pair' nacre key rotate "$v" --identity "$work/ann.pem"
expect 8 'revoke, nothing was changed: passphrase [0-9a-f]{16} .second. has no RSA key pair' \
  nacre key remove --revoke "$v" ann.pub "${secret[@]}"
expect 16 'third: .*does not open' nacre key rotate "$v" "${secret[@]}" --with-passphrase-file "$work/third"
[ "$(cksum <"$v/keyring")" = "$before" ] || failed 'something refused changed the keyring'
expect 0 'epoch 3' nacre key remove --revoke "$v" ann.pub "${secret[@]}" --with-passphrase-file "$work/second"
opens "${secret[@]}" || failed "after --revoke: $(cat "$work/list.log")"
opens "${second[@]}" || failed "after --revoke: $(cat "$work/list.log")"
may_not_open --identity "$work/ann.pem" || failed 'who was removed opens it'
mount_volume "${second[@]}"
expect 0 'epoch 4' nacre key rotate "$m" "${secret[@]}" --with-passphrase-file "$work/second"
expect 0 '' nacre umount "$m"
opens "${second[@]}" || failed "after a rotation: $(cat "$work/list.log")"

# --- One with a key pair needs nobody, and has RSA only until it is used.
expect 0 'Removed' nacre key remove "$v" second "${secret[@]}"
expect 0 Added nacre key add "$v" --new-passphrase-file "$work/second" --with-key-pair "${cheap[@]}" "${secret[@]}"
expect 0 'epoch 5' nacre key rotate "$v" "${secret[@]}"
[ "$(with wrapped_volume_key)" = 1 ] || failed 'nothing is wrapped for the key pair'
expect 0 'not used since' nacre key list "$v"
mount_volume "${second[@]}"
expect 0 '' nacre umount "$m"
[ "$(with wrapped_volume_key) $(with sealed_volume_key)" = '0 2' ] || failed 'RSA stays after it was used'

# --- A backup of the keyring from before a passphrase was changed.
expect 0 'holds the keyring' nacre key backup "$v" "$work/keyring.backup"
expect 0 Changed nacre key passphrase "$v" "${second[@]}" --new-passphrase-file "$work/third" "${cheap[@]}"
expect 8 'was removed from it' nacre key restore "$v" "$work/keyring.backup" "${second[@]}"
expect 0 Restored nacre key restore --force "$v" "$work/keyring.backup" "${second[@]}"
opens "${second[@]}" || failed "after the restoration: $(cat "$work/list.log")"
may_not_open --passphrase-file "$work/third" || failed 'what the backup has not opens it'
expect 0 '' fsck.nacre --deep "$v" "${second[@]}"

verdict
