#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command on folders and files whose names are bytes and not text: not UTF-8, a newline, a quote,
# a control that turns the order of what is shown. Paths reach the volume unchanged, messages stay one
# line each, and JSON has the exact bytes (metadata/text/exact_bytes.h).
. "$(dirname "$0")/command_harness.sh"
needs_mounts
odd=$'\xff\xfe \n"\'\\\u202e%41'
near=$'\xfe\xff \n"\'\\\u202e%41' # the same once its bytes are replaced
place=$work/$odd
mkdir "$place" "$place/mnt" "$place/other"
v=$place/volume m=$place/mnt
cp "$work/passphrase" "$place/passphrase"
secret=(--passphrase-file "$place/passphrase")
one_line() { # CODE COMMAND…: what it says is printable, and no line of its own
  local code=$1 got=0
  shift
  "$@" </dev/null >"$work/out" 2>&1 || got=$?
  [ "$got" = "$code" ] || failed "exit $got, expected $code: $* :: $(cat "$work/out")"
  ! LC_ALL=C grep -qP '[\x00-\x08\x0e-\x1f\xff]|\xe2\x80\xae' "$work/out" || failed "raw bytes: $*"
  ! grep -qE '^"' "$work/out" || failed "a name began a line: $*"
}
exact() { # NAME WANTED [FILE]: the field of that name, in the JSON text at hand
  python3 - "$1" "$2" "${3:-$work/out}" <<'END' || failed "the field $1 is not exact"
import base64, json, os, sys
name, wanted, file = sys.argv[1], os.fsencode(sys.argv[2]), sys.argv[3]
with open(file, encoding="utf-8") as text:
    value = json.loads(text.readline() if file.endswith(".log") else text.read())
for part in name.split(".")[:-1]:
    value = value[int(part) if part.isdigit() else part]
name = name.split(".")[-1]
exact = value.get(name + "_base64")
sys.exit((value[name].encode() if exact is None else base64.b64decode(exact)) != wanted)
END
}
json() { "$@" </dev/null >"$work/out" 2>"$work/err" || failed "$*: $(cat "$work/err")"; }

one_line 0 mkfs.nacre "${secret[@]}" "${cheap[@]}" --label odd "$v"
one_line 8 mkfs.nacre "${secret[@]}" "${cheap[@]}" "$v"
json fsck.nacre --json "${secret[@]}" "$v"
exact volume "$v"
one_line 0 nacre key list "$v"
one_line 0 nacre key status "$v"
one_line 0 nacre key add "${secret[@]}" --new-passphrase-file "$work/wrong" "$v"
one_line 0 nacre key backup "$v" "$place/keys"
one_line 0 nacre stats "$v"
json nacre stats --json "$v"
exact volume "$v"
one_line 0 nacre dump superblock "$v"
one_line 0 nacre trim "${secret[@]}" "$v"
one_line 0 nacre scrub "$v"
json nacre scrub --json "$v"
exact volume "$v"

one_line 0 mount.nacre "${secret[@]}" -o "log=json:$place/daemon.log" "$v" "$m"
exact volume "$v" "$place/daemon.log"
[ "$(stat -f -c %T "$m")" = fuseblk ] || [ "$(stat -f -c %T "$m")" = fuse ] || failed "nothing is mounted"
exact mountpoint "$m" "$v/lock"
echo content >"$m/$odd"
one_line 32 mount.nacre "${secret[@]}" "$v" "$place/other"
one_line 8 fsck.nacre "${secret[@]}" "$m"
json nacre stats --json "$m"
exact volume "$v"
exact mountpoint "$m"
json nacre stats --json "$v" # finds its mount
exact mountpoint "$m"
one_line 0 nacre sync "$m"
one_line 0 nacre file "$m/$odd"
json nacre file --json "$m/$odd"
one_line 0 nacre trim "$m"
one_line 0 nacre scrub "$m"
json nacre backup --json "$m" "$place/copy"
exact target "$place/copy"
one_line 0 nacre top --once "$m"
one_line 0 nacre lock "$m"
one_line 0 nacre unlock "${secret[@]}" "$m"
one_line 0 nacre key rotate "${secret[@]}" "$v"
exec 8<"$m/$odd"
one_line 32 nacre umount "$m"
exec 8<&-
one_line 0 nacre umount "$m"
one_line 0 fsck.nacre "${secret[@]}" "$v"
one_line 0 fsck.nacre --repair --dry-run "${secret[@]}" "$v"
one_line 0 fsck.nacre --scrub "$place/copy"
json nacre witness --json "$v"
exact copies.0.path "$v"
fsck.nacre --salvage "$place/salvaged" --json "${secret[@]}" "$v" >"$work/out" 2>/dev/null
exact target "$place/salvaged"

# Mounted for reading, no lock says where.
one_line 0 mount.nacre -o ro "${secret[@]}" "$v" "$m"
json nacre stats --json "$v"
exact mountpoint "$m"
one_line 0 nacre umount "$m"

# A daemon that was killed at a name that reads the same is not this mount's.
mkdir "$work/$near"
one_line 0 mount.nacre "${secret[@]}" "$v" "$work/$near"
one_line 0 nacre umount "$work/$near"

echo plain >"$place/file"
one_line 0 nacre crypt keygen --no-passphrase "$place/me"
one_line 0 nacre crypt encrypt --recipient "$place/me.pub.pem" "$place/file"
rm "$place/file"
json nacre crypt inspect --json "$place/file.ncr"
exact 0.file "$place/file.ncr"
json nacre crypt decrypt --json --identity "$place/me.pem" "$place/file.ncr"
exact files.0.input "$place/file.ncr"
[ "$(cat "$place/file")" = plain ] || failed "what was decrypted"
verdict
