#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre key: who can open a volume, and changing that, while it is mounted and while it is not; what
# is refused, and in which words.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts
command -v openssl >/dev/null || { echo "skipped: $test_name: there is no openssl(1)"; exit 77; }

v=$work/volume m=$work/mnt
mkdir "$m"
printf 'second passphrase\n' >"$work/second"
printf 'third passphrase\n' >"$work/third"
for name in ann bob; do
  openssl genrsa -out "$work/$name.pem" 2048 2>/dev/null
  openssl pkey -in "$work/$name.pem" -pubout -out "$work/$name.pub"
done
fingerprint() { openssl pkey -pubin -in "$1" -outform DER | sha256sum | cut -c 1-64; }
ann=$(fingerprint "$work/ann.pub")
make_volume "$v"
opens() { fsck.nacre "$@" "$v" >"$work/fsck.log" 2>&1; }
mounted() { grep -aq " $m " /proc/self/mountinfo; }
# Does this secret open it? Mounted or not: both ask the keyring alone.
may_open() { nacre key list "$@" "$v" >"$work/list.log" 2>&1; }
may_not_open() {
  local got=0
  nacre key list "$@" "$v" >"$work/list.log" 2>&1 || got=$?
  [ $got = 16 ]
}
generation() { nacre key list --json "$v" | python3 -c 'import json, sys; print(json.load(sys.stdin)["generation"])'; }
recovery_key_of() { sed -n 's/^  \([0-9A-Z-]*-[0-9A-Z-]*\)$/\1/p' "$1"; }

# --- Usage.
expect 2 'VOLUME' nacre key add
expect 2 'RECIPIENT' nacre key remove "$v"
expect 2 'together' nacre key add "$v" --recovery --recipient "$work/ann.pub"
expect 2 'together' nacre key add "$v" --recovery --new-passphrase-file "$work/second"
expect 8 'neither a volume nor where one is mounted.*mount one' \
  nacre key list "$HOME"
expect 8 'No such file' nacre key add "$work/nowhere" --recovery "${secret[@]}"
expect 8 'No such file' nacre key add "$v" --recipient "$work/nowhere" "${secret[@]}"
expect 2 'private key: give the public one' nacre key add "$v" --recipient "$work/ann.pem" "${secret[@]}"
expect 2 'there is no passphrase and no terminal' nacre key add "$v" --recipient "$work/ann.pub"
expect 2 'no terminal' nacre key add "$v" "${cheap[@]}" "${secret[@]}"
expect 2 '^nacre: --identity: give the passphrase that is to be changed' \
  nacre key passphrase "$v" --identity "$work/ann.pem" --new-passphrase-file "$work/second"
[ "$(generation)" = 1 ] || failed "something refused changed the keyring"

# The same things, first on the volume's directory, then on a mount: every expectation holds for both.
change_everything() {
  local where=$1 before
  before=$(generation)
  # Added: a public key, a passphrase, a recovery key. Each shows its fingerprint.
  expect 16 'wrong key' nacre key add "$where" --recipient "$work/ann.pub" \
    --passphrase-file "$work/wrong"
  [ "$(generation)" = "$before" ] || failed "a wrong key changed the keyring"
  expect 0 "^Added RSA key ${ann:0:16} .ann.pub.: it opens $v.*fingerprint +$ann" \
    nacre key add "$where" --recipient "$work/ann.pub" "${secret[@]}"
  [ "$(generation)" = $((before + 1)) ] || failed "the generation is $(generation)"
  expect 2 "the public key ${ann:0:16} is given twice, or is among the recipients" \
    nacre key add "$where" --recipient "$work/ann.pub" "${secret[@]}"
  check "ann's key does not open it" may_open --identity "$work/ann.pem"
  expect 0 '^Added passphrase [0-9a-f]{16} .laptop.' nacre key add "$where" --label laptop \
    --new-passphrase-file "$work/second" "${cheap[@]}" --identity "$work/ann.pem"
  check "the second passphrase does not open it" may_open --passphrase-file "$work/second"
  nacre key add "$where" --recovery --passphrase-file "$work/second" >"$work/recovery" 2>&1 ||
    failed "add --recovery: $(cat "$work/recovery")"
  recovery_key_of "$work/recovery" >"$work/recovery.key"
  grep -qxE '[0-9A-HJKMNP-TV-Z]{5}(-[0-9A-HJKMNP-TV-Z]{5}){7}' "$work/recovery.key" ||
    failed "no recovery key: $(cat "$work/recovery")"
  check "the recovery key does not open it" may_open --passphrase-file "$work/recovery.key"

  # Listed, with and without a key.
  expect 0 "rsa 2048 +${ann:0:16}  20[0-9T:Z-]+  ann.pub.*passphrase .*laptop.*recovery key.*Not verified" \
    nacre key list "$where"
  expect 0 "generation $((before + 3)), 1 epoch"$'\n''$' nacre key list "$where" "${secret[@]}"
  nacre key list --json "$where" | python3 -c '
import json, sys
keys = json.load(sys.stdin)["recipients"]
assert [k["kind"] for k in keys] == ["passphrase", "rsa", "passphrase", "passphrase"], keys
assert [k.get("confirmed", None) for k in keys] == [True, None, True, True], keys
assert [k["bits"] for k in keys] == [3072, 2048, 3072, 3072], keys' || failed "key list --json"

  # Removed: by label, by fingerprint; what it cannot find, and what it would not.
  expect 8 "no recipient has the label 'carol'.*nacre key list" \
    nacre key remove "$where" carol "${secret[@]}"
  expect 8 'no recipient has' nacre key remove "$where" "${ann:0:7}" "${secret[@]}"
  expect 8 'revoke takes a secret that stays' \
    nacre key remove --revoke "$where" laptop --passphrase-file "$work/second"
  expect 0 'Removed passphrase [0-9a-f]{16} .recovery key.: 3 left.*Copies of the keyring.*key rotate' \
    nacre key remove "$where" 'recovery key' "${secret[@]}"
  check "the recovery key still opens it" may_not_open --passphrase-file "$work/recovery.key"
  expect 0 "Removed RSA key ${ann:0:16} .*2 left" \
    nacre key remove "$where" "${ann:0:12}" --passphrase-file "$work/second"
  check "ann's key still opens it" may_not_open --identity "$work/ann.pem"
  expect 0 'Removed.*1 left.*removed the secret that you gave' \
    nacre key remove "$where" laptop --passphrase-file "$work/second"
  check "the second passphrase still opens it" may_not_open --passphrase-file "$work/second"
  expect 8 'passphrase [0-9a-f]{16} .passphrase.: this is the last recipient.*add another' \
    nacre key remove "$where" passphrase "${secret[@]}"

  # A passphrase for another, and back.
  expect 16 'wrong key' nacre key passphrase "$where" --passphrase-file "$work/wrong" \
    --new-passphrase-file "$work/third" "${cheap[@]}"
  expect 2 'empty' nacre key passphrase "$where" "${secret[@]}" --new-passphrase-file /dev/null \
    "${cheap[@]}"
  expect 0 'Changed passphrase .*fingerprint +[0-9a-f]{64}.*no longer opens it.*key rotate' \
    nacre key passphrase "$where" "${secret[@]}" --new-passphrase-file "$work/third" "${cheap[@]}"
  check "the old passphrase still opens it" may_not_open "${secret[@]}"
  check "the new passphrase does not open it" may_open --passphrase-file "$work/third"
  expect 0 'Changed' nacre key passphrase "$where" --passphrase-file "$work/third" \
    --new-passphrase-command "cat $work/passphrase" "${cheap[@]}"
  check "the passphrase is not what it was" may_open "${secret[@]}"
  check "the two copies differ" cmp "$v/keyring" "$v/keyring.copy"
}

change_everything "$v"
check "the changed volume does not open: $(cat "$work/fsck.log" 2>/dev/null)" opens "${secret[@]}"
typing=$(dirname "$0")/answer_prompts.py
expect 0 "Passphrase for $v:.*New passphrase for $v:.*Once more:.*Changed" \
  python3 "$typing" 'correct horse battery staple' typed typed -- nacre key passphrase "${cheap[@]}" "$v"
expect 0 'New passphrase.*Changed' python3 "$typing" typed 'correct horse battery staple' \
  'correct horse battery staple' -- nacre key passphrase "${cheap[@]}" "$v"

# --- Mounted, under its directory's name and under the mount point's.
mount.nacre "${secret[@]}" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
echo content >"$m/file"
change_everything "$v"
change_everything "$m"
[ "$(cat "$m/file")" = content ] || failed "the mounted volume lost a file"

# Somebody puts an older keyring back while it is mounted: the next change says so.
cp "$v/keyring" "$work/older"
expect 0 'Added' nacre key add "$m" --recipient "$work/ann.pub" "${secret[@]}"
cp "$v/keyring" "$work/newer"
cp "$work/older" "$v/keyring"
cp "$work/older" "$v/keyring.copy"
expect 4 "rolled back: .*but the volume is mounted at $m with generation.*older keyring was put back" \
  nacre key add "$m" --recipient "$work/bob.pub" "${secret[@]}"
# What is on the disk is repaired from a backup of the keyring, of whatever age.
cp "$work/older" "$work/file.keyring"
expect 0 "no longer opens it: +RSA key ${ann:0:16}|Restored the keyring of $v" \
  nacre key restore "$m" "$work/file.keyring" "${secret[@]}"
expect 0 "Restored the keyring of $v from $work/newer: generation" \
  nacre key restore "$m" "$work/newer" "${secret[@]}"
check "ann's key does not open it" may_open --identity "$work/ann.pem"
expect 0 'Removed' nacre key remove "$m" ann.pub "${secret[@]}"

# Two at once: one after the other, both there.
for name in ann bob; do
  timeout 600 nacre key add "$m" --recipient "$work/$name.pub" "${secret[@]}" >"$work/add.$name" 2>&1 &
done
wait
grep -q Added "$work/add.ann" && grep -q Added "$work/add.bob" ||
  failed "two at once: $(cat "$work/add.ann" "$work/add.bob")"
check "ann was lost" may_open --identity "$work/ann.pem"
check "bob was lost" may_open --identity "$work/bob.pem"

# --- Killed right behind a change: it holds. What was written may be younger than a commit.
expect 0 '^$' nacre sync "$m"
expect 0 'Removed' nacre key remove "$m" ann.pub "${secret[@]}"
cp "$v/keyring" "$work/without-ann"
kill -9 $(daemons)
check "the killed daemon stays" wait_for_daemons
umount -l "$m" 2>/dev/null || fusermount3 -uz "$m"
check "ann is back" may_not_open --identity "$work/ann.pem"
cp "$work/newer" "$v/keyring"
cp "$work/newer" "$v/keyring.copy"
expect 4 'rolled back' mount.nacre --identity "$work/ann.pem" "$v" "$m"
cp "$work/without-ann" "$v/keyring"
# The other copy is an older one: as after an update that was interrupted. A mount finishes it.
mount.nacre "${secret[@]}" "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
check "the mount left the older copy" cmp "$v/keyring" "$v/keyring.copy"
check "the mount changed the keyring" cmp "$v/keyring" "$work/without-ann"
expect 0 '^$' nacre umount "$m"

# --- Read-only.
mount.nacre "${secret[@]}" -o ro "$v" "$m" >"$work/mount.log" 2>&1 || failed "mount: $(cat "$work/mount.log")"
expect 8 "$m is mounted read-only: unmount it, or mount it for writing" \
  nacre key add "$m" --recipient "$work/ann.pub" "${secret[@]}"
expect 8 'mounted read-only' nacre key passphrase "$v" "${secret[@]}" \
  --new-passphrase-file "$work/third" "${cheap[@]}"
expect 8 "$m is mounted read-only: unmount it" nacre key rotate "$m"
expect 8 'mounted read-only' nacre key remove --revoke "$m" bob.pub "${secret[@]}"
expect 0 'bob.pub' nacre key list "$m"
expect 0 '^$' nacre umount "$m"

# --- Keyring backup and restore.
expect 0 "$work/kept holds the keyring of $v: generation [0-9]+, 2 recipients .not verified.*this file opens the volume together" \
  nacre key backup "$v" "$work/kept"
[ "$(stat -c %a "$work/kept")" = 600 ] || failed "the backup's mode is $(stat -c %a "$work/kept")"
check "the backup is not the keyring" cmp "$v/keyring" "$work/kept"
expect 8 "$work/kept exists already" nacre key backup "$v" "$work/kept"
expect 16 'wrong key' nacre key backup "$v" "$work/other" --passphrase-file "$work/wrong"
[ ! -e "$work/other" ] || failed "a refused backup left a file"
expect 0 'verified' nacre key backup "$v" "$work/other" "${secret[@]}"
# Both copies gone: nobody opens it, but with the backup.
rm "$v/keyring" "$v/keyring.copy"
expect 4 'both copies of the keyring are missing.*key restore.*from a backup' fsck.nacre "${secret[@]}" "$v"
expect 4 'both copies of the keyring are missing.*key restore' nacre key list "$v"
expect 4 'both copies of the keyring are missing.*key restore' nacre key status "$v"
expect 16 'wrong key' nacre key restore "$v" "$work/kept" --passphrase-file "$work/wrong"
expect 0 "the volume's keyring is replaced, because it cannot be used.*Restored the keyring of $v" \
  nacre key restore "$v" "$work/kept" "${secret[@]}"
check "the restored volume does not open: $(cat "$work/fsck.log" 2>/dev/null)" opens "${secret[@]}"
# An older one than the database remembers is written anew, and not refused as put back.
for _ in 1 2 3; do
  expect 0 'Changed' nacre key passphrase "$v" "${secret[@]}" --new-passphrase-file "$work/passphrase" "${cheap[@]}"
done
rm "$v/keyring" "$v/keyring.copy"
expect 0 'Restored' nacre key restore "$v" "$work/kept" "${secret[@]}"
expect 0 clean fsck.nacre "${secret[@]}" "$v"
# A secret that the volume has lost since comes back only when somebody insists.
expect 0 'Removed' nacre key remove "$v" bob.pub "${secret[@]}"
expect 8 'is sound, and the secret that opens .* was removed.*nothing was changed.*--force' \
  nacre key restore "$v" "$work/kept" --identity "$work/bob.pem"
expect 0 'opens it again: +RSA key .*bob.pub.*Restored' \
  nacre key restore --force "$v" "$work/kept" --identity "$work/bob.pem"
check "bob did not come back" opens --identity "$work/bob.pem"
expect 0 clean fsck.nacre "${secret[@]}" "$v"
# Not this volume's, or no keyring at all.
make_volume "$work/stranger"
nacre key backup "$work/stranger" "$work/strange" >/dev/null 2>&1
expect 2 'is the keyring of another volume' nacre key restore "$v" "$work/strange" "${secret[@]}"
expect 4 "$work/bob.pub is no sound copy.*not a JSON object" nacre key restore "$v" "$work/bob.pub" "${secret[@]}"
sed 's/"generation": [0-9]*/"generation": 99/' "$work/kept" >"$work/edited"
expect 4 "$work/edited is no sound copy.*CRC-32" nacre key restore "$v" "$work/edited" "${secret[@]}"
expect 8 'No such file' nacre key restore "$v" "$work/nowhere" "${secret[@]}"
# What a newer Nacre wrote is no damage, and newer keys than the backup's are not thrown away.
forge_keyring() {
  python3 - "$v" "$1" <<'PY'
import json, os, sys, zlib
for name in ("keyring", "keyring.copy"):
    path = os.path.join(sys.argv[1], name)
    fields = json.load(open(path))
    exec(sys.argv[2])
    bare = {k: v for k, v in fields.items() if k != "crc32"}
    dump = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fields["crc32"] = "%08x" % zlib.crc32(dump.encode())
    with open(path, "w") as f:
        f.write(json.dumps(fields, sort_keys=True, indent=2, ensure_ascii=False) + "\n")
PY
}
cp "$v/keyring" "$work/sound"
forge_keyring 'fields["version"] = 2'
expect 8 'newer Nacre' nacre key restore "$v" "$work/kept" "${secret[@]}"
cp "$work/sound" "$v/keyring"
cp "$work/sound" "$v/keyring.copy"
forge_keyring 'fields["epochs"].append(dict(fields["epochs"][0], number=2))'
expect 8 'has newer keys than .*made before a rotation.*nothing was changed' \
  nacre key restore "$v" "$work/kept" "${secret[@]}"
# Forged otherwise: found out, and replaced.
cp "$work/sound" "$v/keyring"
cp "$work/sound" "$v/keyring.copy"
forge_keyring 'fields["recipients"][0]["label"] = "mine"'
expect 4 'tampered' nacre key add "$v" --recipient "$work/ann.pub" "${secret[@]}"
expect 0 'cannot be used: .*not written by a holder.*Restored' \
  nacre key restore "$v" "$work/kept" "${secret[@]}"
expect 0 clean fsck.nacre "${secret[@]}" "$v"

# --- A key in a token opens a mount: the daemon, a child of who asked for the PIN, uses it.
module=
for place in /usr/lib/softhsm/libsofthsm2.so /usr/lib/*/softhsm/libsofthsm2.so; do
  [ ! -e "$place" ] || module=$place
done
if [ -n "$module" ] && command -v softhsm2-util >/dev/null &&
  [ -e "$(openssl version -e | cut -d'"' -f2)/pkcs11.so" ]; then
  export SOFTHSM2_CONF=$work/softhsm.conf PKCS11_MODULE_PATH=$module
  mkdir "$work/tokens"
  printf 'directories.tokendir = %s\nobjectstore.backend = file\n' "$work/tokens" >"$SOFTHSM2_CONF"
  printf 4711 >"$work/pin"
  openssl pkey -in "$work/ann.pem" -out "$work/ann.pkcs8"
  softhsm2-util --init-token --free --label nacre --pin 4711 --so-pin 0815 >/dev/null 2>&1
  softhsm2-util --import "$work/ann.pkcs8" --token nacre --label ann --id 01 --pin 4711 >/dev/null 2>&1
  token='engine:pkcs11:pkcs11:token=nacre;object=ann;type=private'
  expect 0 'Added' nacre key add "$v" --recipient "$work/ann.pub" "${secret[@]}"
  timeout 600 mount.nacre --identity "$token" --passphrase-file "$work/pin" "$v" "$m" \
    >"$work/mount.log" 2>&1 || failed "mount with a token: $(cat "$work/mount.log")"
  [ "$(cat "$m/file")" = content ] || failed "a mount with a token has other files"
  expect 0 'Removed' nacre key remove "$m" ann.pub --identity "$token" --passphrase-file "$work/pin"
  expect 0 '^$' nacre umount "$m"
else
  skip_part "a key in a token" "softhsm2 and libengine-pkcs11-openssl are not installed"
fi

verdict
