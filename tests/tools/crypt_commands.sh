#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre crypt: files, pipes and folders there and back, under every suite and codec; what it never
# replaces, and what it leaves behind where it fails: nothing.
. "$(dirname "$0")/command_harness.sh"
cd "$work"

export NACRE_READY_KEYS_REPEATED=8 # each container has its own
encrypt() { nacre crypt encrypt "${secret[@]}" "${cheap[@]}" "$@"; }
decrypt() { nacre crypt decrypt "${secret[@]}" "$@"; }
no_leftovers() { check "unfinished files: $1" test -z "$(find "${2:-$work}" -name '.nacre-crypt-*')"; }
python3 - <<'PYTHON'
import random
random.seed(7)
with open("data", "wb") as f:
    for _ in range(40000):
        f.write(bytes([random.randrange(256)]) * random.randrange(1, 60))
PYTHON
head -c 10 data >small
: >empty

# --- There and back, in the ways that people use.
chmod 640 data
touch -d '2020-02-03 04:05:06.789' data
expect 0 '^$' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" data
check 'the input stays' test -e data
check 'mode of the container' test "$(stat -c %a data.ncr)" = 640
mkdir out
expect 0 'data.ncr -> out/data .*in the clear.*sealed' nacre crypt decrypt "${secret[@]}" -v -C out data.ncr
check 'the same bytes' cmp data out/data
check 'mode and time' test "$(stat -c '%a %y' data)" = "$(stat -c '%a %y' out/data)"
# Whoever made the container says what the mode was; what others may do here is the umask's.
cp data open
chmod 777 open
(umask 0 && expect 0 '^$' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" open)
check 'mode of an open container' test "$(stat -c %a open.ncr)" = 777
mkdir masked
(umask 027 && nacre crypt decrypt "${secret[@]}" -C masked open.ncr) || failed 'decrypt under a umask'
check 'the umask counts for what a container says' test "$(stat -c %a masked/open)" = 750
encrypt <data >piped.ncr || failed 'encrypt in a pipe'
decrypt <piped.ncr | cmp - data || failed 'a pipe'
encrypt <data | decrypt | cmp - data || failed 'two pipes'
encrypt empty small -C out || failed 'two files'
decrypt -o - out/small.ncr | cmp - small || failed '-o -'
decrypt -o out/nothing out/empty.ncr && cmp empty out/nothing || failed 'an empty file'
mkfifo fifo
cat data >fifo &
encrypt fifo -o out/fifo.ncr && decrypt out/fifo.ncr && cmp data out/fifo || failed 'a named pipe'
cat out/fifo.ncr >fifo &
decrypt fifo -o out/from_fifo && cmp data out/from_fifo || failed 'a container from a named pipe'
(umask 027 && encrypt <data -o masked.ncr) && check 'the umask' test "$(stat -c %a masked.ncr)" = 640
no_leftovers 'plain use'

# --- Nothing is replaced.
expect 8 'data.ncr exists already and was not changed: give -f' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" data
expect 8 'out/data exists already' nacre crypt decrypt "${secret[@]}" -C out data.ncr
expect 0 '^$' nacre crypt decrypt "${secret[@]}" -f -C out data.ncr
expect 2 'would replace what is being read' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" -f data -o data
ln -s data link
expect 8 'link exists already' nacre crypt decrypt "${secret[@]}" data.ncr -o link
expect 8 'out is a folder: to write into it, give -C' nacre crypt decrypt "${secret[@]}" -f data.ncr -o out
cp data keepsake
expect 0 '^$' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --remove keepsake
check 'removed' test ! -e keepsake
expect 0 '^$' nacre crypt decrypt "${secret[@]}" --remove keepsake.ncr
cmp data keepsake && check 'removed' test ! -e keepsake.ncr

# --- On the disk before it has its name, unless told otherwise.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
  synced() { # ARGUMENT…: how many syncs there were up to the rename, and that there was one
    strace -f -o trace -e trace=fsync,fdatasync,syncfs,sync_file_range,rename,renameat2 \
      nacre crypt encrypt "${secret[@]}" "${cheap[@]}" -f data -o synced "$@" || failed "strace $*"
    awk '/rename/ && /"synced"/ { print syncs + 0 } /sync/ && !/rename/ { ++syncs }' trace
  }
  check 'synced, then renamed' test "$(synced)" -gt 0
  check '--no-sync syncs nothing' test "$(synced --no-sync)" = 0
  check 'nor afterwards' test "$(grep -c -e 'sync(' -e syncfs -e sync_file trace)" = 0
else
  skip_part 'what is synced' 'there is no strace, or it is not allowed'
fi
encrypt --no-sync data small -C unsynced && decrypt --no-sync unsynced/data.ncr -C unsynced && cmp data unsynced/data ||
  failed '--no-sync'
expect 8 'unsynced/small.ncr exists already' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --no-sync small -C unsynced
expect 2 'remove' nacre crypt encrypt "${secret[@]}" --no-sync --remove data -o x
no_leftovers '--no-sync'
# Room that was made ahead is given back, behind the end of the file too.
head -c 9000000 /dev/zero >long
encrypt --codec none long
check 'no more room than it needs' test $(($(stat -c '%b * %B' long.ncr))) -lt $(($(stat -c %s long.ncr) + 1000000))
decrypt long.ncr -C unsynced && check 'nor decrypted' test $(($(stat -c '%b * %B' unsynced/long))) -lt 10000000
cmp long unsynced/long || failed 'a longer file'
rm long long.ncr

# --- What is not right on the command line.
expect 2 'does not end with .ncr' nacre crypt decrypt "${secret[@]}" data
expect 2 '-o is for one file' nacre crypt encrypt "${secret[@]}" data small -o x
expect 2 'give only one of them' nacre crypt encrypt "${secret[@]}" data -o x -C out
expect 2 'cannot be given together' nacre crypt encrypt "${secret[@]}" - data
expect 2 'two of the files would become' nacre crypt encrypt "${secret[@]}" data ./out/../data -C out
expect 2 'legacy' nacre crypt encrypt "${secret[@]}" --cipher des-cbc data
expect 2 'is no engine' nacre crypt encrypt "${secret[@]}" --engine steam data -o x
expect 2 'no terminal' nacre crypt encrypt data -o x
expect 2 'json' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --json -
expect 8 'out is a folder: give -r' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" out
expect 8 'nowhere' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" nowhere
expect 8 'nowhere' nacre crypt decrypt nowhere.ncr
expect 2 'a command is missing; there are encrypt, decrypt, inspect, keygen' nacre crypt

# --- Keys.
expect 0 'me.pem +me.pub.pem.*keep the other one private' nacre crypt keygen --bits 2048 "${secret[@]}" me
check 'private' test "$(stat -c %a me.pem)" = 600
check 'encrypted' grep -q 'ENCRYPTED PRIVATE KEY' me.pem
expect 8 'me.pem exists already, and a key is never replaced' nacre crypt keygen --bits 2048 "${secret[@]}" me
expect 0 '"fingerprint"' nacre crypt keygen --bits 2048 --no-passphrase --count 3 --json --engine auto you
expect 2 'is no engine' nacre crypt keygen --no-passphrase --engine steam other
[ -e other.pem ] && failed 'a key was made by no engine'
check 'three pairs' test "$(ls you-?.pem you-?.pub.pem | wc -l)" = 6
if command -v openssl >/dev/null; then
  check 'openssl opens it' openssl pkey -in me.pem -passin "file:$work/passphrase" -noout
  openssl pkey -in me.pem -passin "file:$work/passphrase" -pubout | cmp - me.pub.pem || failed 'not a pair'
fi
expect 0 '^$' nacre crypt encrypt --recipient me.pub.pem --recipient you-1.pub.pem "${secret[@]}" \
  --passphrase-file wrong "${cheap[@]}" data -o many.ncr
for key in you-1.pem "me.pem ${secret[*]}"; do
  # shellcheck disable=SC2086
  nacre crypt decrypt --identity $key many.ncr -o - | cmp - data || failed "--identity $key"
done
for file in passphrase wrong; do
  nacre crypt decrypt --passphrase-file "$file" many.ncr -o - | cmp - data || failed "passphrase of two"
done
expect 16 "not among this file's" nacre crypt decrypt --identity you-2.pem many.ncr -o x
expect 16 'does not open this file' nacre crypt decrypt --passphrase-file wrong data.ncr -o x
expect 16 'no passphrase: open it with a private key' nacre crypt decrypt "${secret[@]}" -o x \
  <(nacre crypt encrypt --recipient me.pub.pem - <small)
expect 2 'private key: give the public' nacre crypt encrypt --recipient you-1.pem data -o x
expect 2 'twice' nacre crypt encrypt --recipient me.pub.pem --recipient me.pub.pem data -o x

# --- Every suite with every codec, in one pipe.
for cipher in aes-{256,192,128}-{gcm,ctr,cbc} des-ede3-cbc des-cbc; do
  for codec in none lz77 zstd rle huffman gdeflate lzw auto; do
    nacre crypt encrypt --recipient you-1.pub.pem --cipher "$cipher" --allow-legacy-cipher \
      --codec "$codec" <data 2>/dev/null |
      nacre crypt decrypt --identity you-1.pem | cmp - data || failed "$cipher with $codec"
  done
done
expect 0 'des-cbc protects too little' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --cipher des-cbc \
  --allow-legacy-cipher --padding padme data -o des.ncr
decrypt -o - des.ncr | cmp - data || failed 'DES, longer than a key lasts'

# --- What it shows.
expect 0 'cipher +aes-256-gcm.*opened by +passphrase.*A proof needs a key' nacre crypt inspect data.ncr
expect 0 'of data, mode 0640, of 2020-02-03T.*opened and verified' nacre crypt inspect "${secret[@]}" data.ncr
expect 0 '"kind": "rsa".*"verified": false' nacre crypt inspect --json many.ncr
expect 16 'does not open' nacre crypt inspect --passphrase-file wrong data.ncr
nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --json small -f -o small.ncr | python3 -c '
import json, sys
run = json.load(sys.stdin)
assert run["file_count"] == 1 and run["failed_count"] == 0 and run["plain_bytes"] == 10, run
assert run["files"][0]["output"] == "small.ncr" and run["files"][0]["ok"], run' || failed '--json'

# --- Damage: the words, the exit code, and no file.
damaged() { # WORDS FILE
  expect 4 "$1" nacre crypt decrypt "${secret[@]}" "$2" -o damaged
  check "$2 leaves nothing" test ! -e damaged
  no_leftovers "$2"
}
head -c -1 data.ncr >cut.ncr
head -c 3000 data.ncr >short.ncr
cp data.ncr flipped.ncr
printf '\377\377' | dd of=flipped.ncr bs=1 seek=$(($(stat -c %s data.ncr) / 2)) conv=notrunc status=none
cat data.ncr data.ncr >twice.ncr
(cat data.ncr; echo) >longer.ncr
damaged 'cut.ncr: the container is cut off: its end is missing' cut.ncr
damaged 'short.ncr: the container is cut off' short.ncr
damaged 'flipped.ncr: record [0-9]+: CRC-32' flipped.ncr
damaged 'twice.ncr: something follows the end' twice.ncr
damaged 'longer.ncr: something follows the end' longer.ncr
damaged 'data: this is not a container of nacre crypt' data
damaged 'empty: the file is empty, so it is not a container' empty
expect 4 'CRC-32' nacre crypt inspect flipped.ncr
expect 4 'cut off' nacre crypt inspect cut.ncr
decrypt <flipped.ncr >part 2>/dev/null
check 'a pipe tells of it' test $? = 4
cmp -n "$(stat -c %s part)" part data || failed 'something unverified was given out'
# One of several fails.
expect 4 'cut.ncr: the container.*flipped.ncr: record.*2 of 3 files failed; the others are done' \
  nacre crypt decrypt "${secret[@]}" -C out/three cut.ncr flipped.ncr data.ncr
expect 4 '1 of 2 files failed' nacre crypt decrypt "${secret[@]}" -C out/two flipped.ncr data.ncr
check 'the others are there' cmp data out/two/data

# --- Folders, and thousands of files.
count=3000
[ -z "${NACRE_LONG-}" ] || count=10000
python3 - "$count" <<'PYTHON'
import os, sys
for i in range(int(sys.argv[1])):
    folder = f"tree/{i % 37:02}/{i % 3}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{i}", "w") as f:
        f.write(f"file {i} " * (i % 100))
os.symlink("0", "tree/link")
PYTHON
expect 0 '^$' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" -r tree -C sealed
check 'all of them' test "$(find sealed/tree -name '*.ncr' | wc -l)" = $count
expect 0 '^$' nacre crypt decrypt "${secret[@]}" -r sealed/tree -C opened
rm tree/link
check 'the same tree' diff -r tree opened/tree
expect 0 '^$' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" -r opened --remove
check 'sealed in place' test -z "$(find opened -type f ! -name '*.ncr')"
no_leftovers 'folders'

# --- A full disk, a file size limit, and a signal leave nothing.
(ulimit -f 20 && expect 8 'File too large' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --codec none data -o limited
  exit $failures) || failures=$((failures + 1))
check 'nothing of it' test ! -e limited
no_leftovers 'a limit'
if is_root && mkdir tiny && mount -t tmpfs -o size=512k none tiny 2>/dev/null; then
  expect 8 'tiny/data.ncr: No space left' nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --codec none data -C tiny
  check 'an empty disk' test -z "$(ls -A tiny)"
  nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --codec none - <data 2>/dev/null >tiny/piped
  check 'a full disk behind a pipe' test $? = 8
  umount tiny
else
  skip_part 'a full disk' 'tmpfs can be mounted by root only'
fi
mkdir interrupted
for signal in INT TERM HUP; do
  mkfifo "slow$signal"
  # In the background a shell ignores SIGINT, and nohup SIGHUP.
  python3 -c 'import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' \
    nacre crypt encrypt "${secret[@]}" "${cheap[@]}" --codec none "slow$signal" -o "interrupted/$signal" &
  process=$!
  exec 9>"slow$signal"
  head -c 8000000 /dev/zero >&9
  for _ in $(seq 3000); do
    [ -z "$(ls -A interrupted)" ] || break
    sleep 0.1
  done
  check "$signal: under way" test -n "$(ls -A interrupted)"
  kill -$signal $process
  wait $process
  check "$signal: ended by it" test $? -gt 128
  check "$signal: nothing is left" test -z "$(ls -A interrupted)"
  exec 9>&-
done

verdict
