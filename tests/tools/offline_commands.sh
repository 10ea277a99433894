#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands that need no mount: every exit code, every bad input, and the words that go with it.
. "$(dirname "$0")/command_harness.sh"

# --- Usage.
for program in mkfs.nacre mount.nacre fsck.nacre nacre; do
  expect 0 'VOLUME|stats' $program --help
  expect 0 '^nacre [0-9]' $program --version
  expect 2 "$program.*--help" $program
done
for command in mkfs.nacre mount.nacre fsck.nacre 'nacre stats' 'nacre sync'; do
  expect 2 'no-such-option' $command --no-such-option "$work/a" "$work/b"
done
expect 0 '^nacre [0-9]' nacre version
expect 2 'nacre: frob is no command; there are backup, file, key, lock, scrub, stats.*umount.*--help' nacre frob
expect 2 'nacre: frob is no command' nacre --json frob "$work/a"
expect 2 'nacre: key frob is no command; there are list, ' nacre key frob "$work/a"
expect 2 'nacre: dump frob is no command; there are superblock, ' nacre dump frob "$work/a"
expect 2 'a command is missing; there are backup, file, key, ' nacre
expect 2 'a command is missing; there are list, ' nacre key

# --- mkfs.nacre: what it refuses leaves no trace.
bad_mkfs() {
  local code=$1 words=$2
  shift 2
  expect "$code" "$words" mkfs.nacre "${secret[@]}" "${cheap[@]}" "$@" "$work/refused"
  [ ! -e "$work/refused" ] || failed "$* left $work/refused"
}
bad_mkfs 2 "not a size" --chunk-size 64KB
bad_mkfs 2 'power of two from 4K to 1M' --chunk-size 2K
bad_mkfs 2 'power of two from 4K to 1M' --chunk-size 2M
bad_mkfs 2 'power of two from 4K to 1M' --chunk-size 96K
bad_mkfs 2 'codec' --codec nonsense
bad_mkfs 2 'rle, huffman, gdeflate' --codec lz4
bad_mkfs 2 'nonsense' --cipher nonsense
for cipher in des-cbc des-ede3-cbc; do
  bad_mkfs 2 "$cipher: DES and 3DES.*aes-128-cbc, or add --allow-legacy-cipher" --cipher $cipher
done
bad_mkfs 2 'none or padme' --padding nonsense
bad_mkfs 2 'level' --level 10
bad_mkfs 2 'level' --level -1
bad_mkfs 2 'kdf-memory' --kdf-memory 4M
bad_mkfs 2 'kdf-memory' --kdf-memory 8G
bad_mkfs 2 'kdf-time' --kdf-time 0
bad_mkfs 2 'kdf-time' --kdf-time 65
expect 8 'kdf-limit 2048M' mkfs.nacre "${secret[@]}" --kdf-memory 2G --kdf-time 1 "$work/refused"
expect 8 'kdf-limit 16M' mkfs.nacre "${secret[@]}" --kdf-limit 8M --kdf-memory 8192 --kdf-time 2 "$work/refused"
bad_mkfs 2 'kdf-limit' --kdf-limit 1M
bad_mkfs 2 'much.*not a size' --kdf-limit much
# What costs more than an opening may: one that is twice as dear, and both together.
expect 0 '' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$work/dear"
expect 8 'kdf-limit' nacre key add --kdf-limit 16M --new-passphrase-file "$work/wrong" --kdf-memory 8192 \
  --kdf-time 2 "${secret[@]}" "$work/dear"
expect 0 'opens' nacre key add --new-passphrase-file "$work/wrong" --kdf-memory 8192 --kdf-time 2 "${secret[@]}" \
  "$work/dear"
expect 0 '' fsck.nacre --kdf-limit 8M "${secret[@]}" "$work/dear"
expect 8 'kdf-limit 24M' fsck.nacre --kdf-limit 8M --passphrase-file "$work/wrong" "$work/dear"
expect 0 '' fsck.nacre --kdf-limit 24M --passphrase-file "$work/wrong" "$work/dear"
bad_mkfs 2 'label' --label $'a\nb'
bad_mkfs 8 'nowhere' --recipient "$work/nowhere"
bad_mkfs 2 'together' --passphrase-command 'echo x'
expect 2 'no terminal to ask' mkfs.nacre "${cheap[@]}" "$work/refused"
expect 2 'the passphrase is empty' mkfs.nacre --passphrase-file /dev/null "$work/refused"
expect 8 'nowhere.*No such file' mkfs.nacre --passphrase-file "$work/nowhere" "$work/refused"
expect 8 'status 3' mkfs.nacre --passphrase-command 'exit 3' "$work/refused"
expect 8 'No such file' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$work/no/such/place"
[ ! -e "$work/refused" ] || failed "a refused mkfs left a directory"
mkdir "$work/full"
echo precious >"$work/full/file"
expect 8 'not empty: nothing was changed' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$work/full"
[ "$(ls "$work/full")" = file ] || failed "a refused mkfs changed the directory: $(ls "$work/full")"
echo file >"$work/plain"
expect 8 'plain.*(not a directory|Not a directory)' mkfs.nacre "${secret[@]}" "$work/plain"
expect 8 '/proc' mkfs.nacre "${secret[@]}" "${cheap[@]}" /proc/nacre-test
if is_root; then
  # Half way: no space for the database. Everything made so far goes again.
  mkdir "$work/tiny"
  if mount -t tmpfs -o size=64k tmpfs "$work/tiny" 2>/dev/null; then
    expect 8 'space' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$work/tiny/volume"
    [ -z "$(ls -A "$work/tiny")" ] || failed "a mkfs that ran out of space left $(find "$work/tiny")"
    expect 8 'space' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$work/tiny"
    [ -z "$(ls -A "$work/tiny")" ] || failed "a mkfs that ran out of space left $(find "$work/tiny")"
    umount "$work/tiny"
  else
    skip_part "mkfs without space" "no tmpfs can be mounted"
  fi
fi

# --- mkfs.nacre: what it makes.
v=$work/volume
expect 0 "Made a volume in $v.*id +[0-9a-f]{32}.*fingerprint +[0-9a-f]{64}.*passphrase [0-9a-f]{16}" \
  mkfs.nacre "${secret[@]}" "${cheap[@]}" --label 'my files' "$v"
[ "$(stat -c %a "$v")" = 700 ] || failed "the volume's mode is $(stat -c %a "$v")"
check "the new volume is not in known_volumes" grep -q "^$v [0-9a-f]\{32\} [0-9a-f]\{64\}$" "$known"
expect 8 'already holds a volume: nothing was changed' mkfs.nacre "${secret[@]}" "$v"
mkdir "$work/empty" "$work/mnt"
expect 0 'Made a volume' mkfs.nacre "${secret[@]}" "${cheap[@]}" --codec zstd --level 9 \
  --padding padme --chunk-size 1MiB "$work/empty"
expect 0 'zstd, level 9.*1.0 MiB, padding padme' nacre stats "$work/empty"

# What an interrupted mkfs left is cleared by the next.
mkdir "$work/unfinished"
touch "$work/unfinished/mkfs-unfinished"
expect 8 'interrupted.*run it again' fsck.nacre "${secret[@]}" "$work/unfinished"
expect 0 'Made a volume' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$work/unfinished"

# --- Passphrase sources.
expect 0 clean fsck.nacre "${secret[@]}" "$v"
expect 0 clean fsck.nacre --passphrase-command "cat $work/passphrase" "$v"
expect 0 clean bash -c "fsck.nacre --passphrase-file /dev/fd/3 $v 3<$work/passphrase"
expect 0 clean bash -c "fsck.nacre --passphrase-file <(cat $work/passphrase) $v"
expect 0 clean bash -c "fsck.nacre --passphrase-fd 4 $v 4<$work/passphrase"
expect 8 'descriptor 9' fsck.nacre --passphrase-fd 9 "$v"
expect 2 'no terminal to ask' fsck.nacre "$v"
expect 16 'wrong key' fsck.nacre --passphrase-file "$work/wrong" "$v"
expect 16 'wrong key' nacre stats --passphrase-file "$work/wrong" "$v"
# On a terminal somebody is asked, and nothing he types is shown.
typing=$(dirname "$0")/answer_prompts.py
expect 0 "Passphrase for $v:.*clean" python3 "$typing" 'correct horse battery staple' -- \
  fsck.nacre "$v"
if python3 "$typing" 'correct horse battery staple' -- fsck.nacre "$v" | grep -q horse; then
  failed "the passphrase was shown"
fi
expect 16 'wrong key' python3 "$typing" nonsense -- fsck.nacre "$v"
expect 2 'empty' python3 "$typing" '' -- fsck.nacre "$v"
expect 2 'Once more.*differ' python3 "$typing" one two -- mkfs.nacre "${cheap[@]}" "$work/typed"
[ ! -e "$work/typed" ] || failed "two different passphrases made a volume"
expect 0 'Once more.*Made a volume' python3 "$typing" one one -- \
  mkfs.nacre "${cheap[@]}" "$work/typed"
expect 0 clean python3 "$typing" one -- fsck.nacre "$work/typed"

# --- RSA recipients.
if command -v openssl >/dev/null; then
  openssl genrsa -out "$work/key.pem" 2048 2>/dev/null
  openssl pkey -in "$work/key.pem" -pubout -out "$work/public.pem"
  openssl pkey -in "$work/key.pem" -aes256 -passout "file:$work/passphrase" -out "$work/locked.pem"
  openssl genrsa -out "$work/other.pem" 2048 2>/dev/null
  expect 2 'private key.*-pubout' mkfs.nacre --recipient "$work/key.pem" "$work/rsa"
  expect 2 'plain' mkfs.nacre --recipient "$work/plain" "$work/rsa"
  expect 2 'given twice' mkfs.nacre --recipient "$work/public.pem" --recipient "$work/public.pem" \
    "$work/rsa"
  [ ! -e "$work/rsa" ] || failed "a refused recipient left a directory"
  expect 0 'RSA key [0-9a-f]{16} .public.pem' mkfs.nacre --recipient "$work/public.pem" "$work/rsa"
  expect 0 clean fsck.nacre --identity "$work/key.pem" "$work/rsa"
  expect 0 clean fsck.nacre --identity "$work/locked.pem" "${secret[@]}" "$work/rsa"
  expect 16 'wrong key' fsck.nacre --identity "$work/locked.pem" \
    --passphrase-file "$work/wrong" "$work/rsa"
  expect 2 'no terminal' fsck.nacre --identity "$work/locked.pem" "$work/rsa"
  expect 16 'wrong key.*not among' fsck.nacre --identity "$work/other.pem" "$work/rsa"
  expect 16 'no passphrase.*--identity' fsck.nacre "${secret[@]}" "$work/rsa"
  expect 2 'public.pem' fsck.nacre --identity "$work/public.pem" "$work/rsa"
  expect 0 'rsa .*public.pem.*Not verified' nacre key list "$work/rsa"
  expect 0 'generation 1' nacre key list --identity "$work/key.pem" "$work/rsa"
  expect 0 'Made a volume' mkfs.nacre "${secret[@]}" "${cheap[@]}" \
    --recipient "$work/public.pem" "$work/both"
  expect 0 clean fsck.nacre --identity "$work/key.pem" "$work/both"
  expect 0 clean fsck.nacre "${secret[@]}" "$work/both"
else
  skip_part "RSA recipients" "there is no openssl(1)"
fi

# --- Not a volume.
expect 8 'No such file|not found|does not exist' fsck.nacre "${secret[@]}" "$work/nowhere"
expect 8 'is not a Nacre volume' fsck.nacre "${secret[@]}" "$work/full"
expect 8 'is not a Nacre volume' fsck.nacre --scrub "$work/full"
expect 8 'ot a directory' fsck.nacre "${secret[@]}" "$work/plain"
expect 8 'neither a volume nor' nacre stats "$work/full"
expect 8 'is not a Nacre mount: nothing' nacre sync "$work/full"
expect 8 'is not a Nacre mount: nothing' nacre umount "$work/full"
expect 8 'is not a Nacre mount: a filesystem of type proc' nacre umount /proc
expect 8 'No such file' nacre sync "$work/nowhere"

# --- A later format version is told from damage.
cp -a "$v" "$work/later"
sed -i "\\,^$work/later ,d" "$known"
python3 - "$work/later" <<'PY'
import json, os, sys, zlib
# What all versions keep (FORMAT.md): one JSON object, its CRC-32 over the canonical dump.
for name in ("superblock", "superblock.copy"):
    path = os.path.join(sys.argv[1], name)
    fields = json.load(open(path))
    fields["version"] = 2
    bare = {k: v for k, v in fields.items() if k != "crc32"}
    dump = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fields["crc32"] = "%08x" % zlib.crc32(dump.encode())
    with open(path, "w") as f:
        f.write(json.dumps(fields, sort_keys=True, indent=2, ensure_ascii=False) + "\n")
PY
expect 8 'version 2|newer' fsck.nacre "${secret[@]}" "$work/later"
expect 8 'version 2|newer' mount.nacre "${secret[@]}" "$work/later" "$work/mnt"

# --- fsck.nacre and nacre stats, dump.
expect 0 'structure: 1 files.*clean' fsck.nacre "${secret[@]}" "$v"
expect 0 'database: .*clean' fsck.nacre --scrub "$v"
expect 0 'database: .*clean' fsck.nacre --scrub --deep "${secret[@]}" "$v"
expect 0 '"clean": true.*"structure"' fsck.nacre --json "${secret[@]}" "$v"
check "fsck --json is no JSON" bash -c \
  "fsck.nacre --deep --json --passphrase-file $work/passphrase $v | python3 -m json.tool >/dev/null"
expect 0 'not mounted.*my files.*lz77.*1 passphrases, 0 RSA.*Not verified' nacre stats "$v"
expect 0 'fingerprint +[0-9a-f]{64}.*files +1 with' nacre stats "${secret[@]}" "$v"
check "stats --json is no JSON" bash -c "nacre stats --json $v | python3 -m json.tool >/dev/null"
expect 0 'superblock: .*generation 1, whole.*"volume_id"' nacre dump superblock "$v"
expect 0 'keyring.copy: .*whole.*the same text' nacre dump keyring "$v"
expect 0 'CURRENT.*whole' nacre dump db "$v"
expect 0 'system next_inode 2.*inodes 1 mode 40755' nacre dump tables "${secret[@]}" "$v"
expect 0 '^inodes 1 mode' nacre dump tables --table inodes "${secret[@]}" "$v"
expect 2 "no table 'nonsense'" nacre dump tables --table nonsense "${secret[@]}" "$v"
expect 8 'segments/000000000007.seg' nacre dump segment "$v" 7

# --- Damage. Each time the command says which file, and a copy is no longer needed.
damaged() {
  rm -rf "$work/damaged"
  cp -a "$v" "$work/damaged"
  # A copy at another path is no known volume, and not the last one either.
  sed -i "\\,^$work/damaged ,d" "$known"
}
flip() { python3 -c "
import sys
f = open(sys.argv[1], 'r+b'); at = int(sys.argv[2]); f.seek(at); b = f.read(1); f.seek(at)
f.write(bytes([b[0] ^ 4]))" "$work/damaged/$1" "$2"; }
for file in superblock superblock.copy keyring keyring.copy; do
  damaged
  flip $file 100
  expect 4 "(rot|tampered): .*$file.*1 error found" fsck.nacre "${secret[@]}" "$work/damaged"
  expect 4 "(rot|tampered): .*$file" fsck.nacre --scrub "$work/damaged"
  rm "$work/damaged/$file"
  expect 4 "missing: .*$file" fsck.nacre "${secret[@]}" "$work/damaged"
done
for name in superblock keyring; do
  damaged
  flip $name 100
  flip $name.copy 101
  expect 4 "$name" fsck.nacre "${secret[@]}" "$work/damaged"
  expect 4 "$name" fsck.nacre --scrub "$work/damaged"
  expect 4 "$name" mount.nacre "${secret[@]}" "$work/damaged" "$work/mnt"
  rm "$work/damaged/$name" "$work/damaged/$name.copy"
  expect 4 "$name are missing|both copies" fsck.nacre "${secret[@]}" "$work/damaged"
  expect 4 "$name" fsck.nacre --scrub "$work/damaged"
done
# The CRC is for rot; only the key shows a change by somebody who made it right again.
damaged
python3 - "$work/damaged" <<'PY'
import json, os, sys, zlib
for name in ("superblock", "superblock.copy"):
    path = os.path.join(sys.argv[1], name)
    fields = json.load(open(path))
    fields["padding"] = "padme"
    bare = {k: v for k, v in fields.items() if k != "crc32"}
    dump = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fields["crc32"] = "%08x" % zlib.crc32(dump.encode())
    with open(path, "w") as f:
        f.write(json.dumps(fields, sort_keys=True, indent=2, ensure_ascii=False) + "\n")
PY
expect 0 clean fsck.nacre --scrub "$work/damaged"
expect 4 'tampered.*superblock' fsck.nacre "${secret[@]}" "$work/damaged"
damaged
manifest=$(basename "$work"/damaged/db/MANIFEST-*)
flip "db/$manifest" 200
expect 4 "rot: db/$manifest" fsck.nacre --scrub "$work/damaged"
expect 4 "$manifest" fsck.nacre --deep "${secret[@]}" "$work/damaged"
damaged
rm "$work/damaged/db/CURRENT"
expect 4 'missing: .*CURRENT' fsck.nacre "${secret[@]}" "$work/damaged"
damaged
rm -r "$work/damaged/db"
expect 4 'db' fsck.nacre "${secret[@]}" "$work/damaged"
expect 4 'db' fsck.nacre --scrub "$work/damaged"

# --- Fingerprints.
rm "$known"
expect 0 'used for the first time. Its fingerprint is [0-9a-f]{64}, remembered in' \
  fsck.nacre "${secret[@]}" "$v"
expect 0 '^structure' fsck.nacre "${secret[@]}" "$v"
mv "$v" "$work/aside"
make_volume "$work/stranger"
mv "$work/stranger" "$v"
expect 8 "holds another volume than when it was used last.*remove line 1 of $known.*$v [0-9a-f]+" \
  fsck.nacre "${secret[@]}" "$v"
expect 8 'holds another volume' mount.nacre "${secret[@]}" "$v" "$work/mnt"
expect 8 'holds another volume' fsck.nacre "$v"
# Somebody who knows the id but not the key.
sed -i "\\,^$work/stranger ,d; s,^$v .*,$v $(grep -o '"volume_id": "[0-9a-f]*"' "$v/superblock" | cut -d'"' -f4) 00," "$known"
expect 8 'its key has another fingerprint, [0-9a-f]{64}\.' fsck.nacre "${secret[@]}" "$v"
sed -i "\\,^$v ,d" "$known"
expect 0 'first time' fsck.nacre "${secret[@]}" "$v"
# mkfs.nacre knows its own.
rm -rf "$v"
make_volume "$v"
expect 0 '^structure' fsck.nacre "${secret[@]}" "$v"
# The same volume at another path is known by its id, and pinned for that path, too.
cp -a "$v" "$work/usb"
expect 0 "usb is the volume that is known as $v\\. Its fingerprint is [0-9a-f]{64}, remembered in" \
  fsck.nacre "${secret[@]}" "$work/usb"
expect 0 '^structure' fsck.nacre "${secret[@]}" "$work/usb"
check "the other path is not in known_volumes" grep -q "^$work/usb " "$known"
# Its id with another key: somebody made a volume of his own around it.
sed -i "\\,^$work/usb ,d; s,^\\($v [0-9a-f]*\\) .*,\\1 $(printf '%064d' 0)," "$known"
cp "$known" "$work/known.before"
for _ in 1 2; do  # being refused does not make it known
  expect 8 "usb says that it is the volume that is known as $v .*another fingerprint.*line [0-9]+ of $known" \
    fsck.nacre "${secret[@]}" "$work/usb"
done
cmp "$known" "$work/known.before" || failed 'a refused volume changed known_volumes'
expect 8 'says that it is the volume that is known as' mount.nacre "${secret[@]}" "$work/usb" "$work/mnt"
shown=$(sed -n 's/^  fingerprint  //p' "$work/mkfs.log")
expect 0 'used for the first time' fsck.nacre "${secret[@]}" --fingerprint "$shown" "$work/usb"
expect 0 '^structure' fsck.nacre "${secret[@]}" "$work/usb"
expect 8 'holds another volume' fsck.nacre "${secret[@]}" --fingerprint "$shown" "$v"
# No place for the list: a warning, and on with the work.
expect 0 'warning: .*cannot be remembered.*clean' env HOME=/dev/null fsck.nacre "${secret[@]}" "$v"

verdict
