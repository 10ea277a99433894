#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre backup: of a mount under load, of a volume that is not mounted, again and again into one
# folder, interrupted by kills of either side; and what it refuses.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume m=$work/mnt t=$work/target b=$work/backup-mnt
mkdir "$m" "$b"
make_volume "$v"
mount_it() { expect 0 '^$' mount.nacre "${secret[@]}" "$@" "$v" "$m"; }
unmount_it() { expect 0 '^$' nacre umount "$m"; }
mib=1048576
noise() { head -c "$1" /dev/urandom; }
sums() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0r sha256sum); }
# The target is a clean volume; its files are then at $b. It is older than the volume, which goes on.
open_backup() {
  expect 0 'clean' fsck.nacre --deep --accept-older-state "${secret[@]}" "$t"
  expect 0 'clean' fsck.nacre --scrub "$t"
  expect 0 '' mount.nacre "${secret[@]}" -o ro,accept-older-state "$t" "$b"
}
close_backup() { expect 0 '^$' nacre umount "$b"; }
wait_for() {
  local what=$1
  shift
  for _ in $(seq 3000); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.1
  done
  failed "waited in vain for $what"
}

expect 2 'TARGET' nacre backup "$v"
expect 8 'neither a volume nor where one is mounted' nacre backup "$HOME" "$t"
expect 2 'is not a size' nacre backup --rate fast "$v" "$t"
expect 2 'is the volume itself' nacre backup "$v" "$v"
expect 2 'lies within the volume' nacre backup "$v" "$v/segments"
expect 2 'holds the volume itself' nacre backup "$v" "$work"
expect 8 'holds other files; nothing was changed' nacre backup "$v" "$HOME"
expect 8 'No such file' nacre backup "$v" "$work/no/such/folder"
rm -rf "$t"

# --- Not mounted, and again after little has changed.
mount_it
noise $((8 * mib)) >"$m/large"
large=$(sha256sum <"$m/large")
echo first >"$m/small"
unmount_it
expect 0 'files copied, 0 removed; verified' nacre backup --verify "$v" "$t"
open_backup
check "the first backup holds the large file" [ "$(sha256sum <"$b/large")" = "$large" ]
check "the first backup holds the small file" [ "$(cat "$b/small")" = first ]
expect 32 'mounted|in use' nacre backup "$v" "$t"
close_backup
mount_it
echo second >"$m/small"
expect 2 'lies within the mounted volume' nacre backup "$m" "$m/backup"
rmdir "$m/backup" 2>/dev/null
copied=$(nacre backup --json "$m" "$t" | sed -n 's/.*"copied_bytes": \([0-9]*\).*/\1/p')
check "a second backup copies little: ${copied:-nothing said}" [ "${copied:-$mib}" -lt $((mib / 2)) ]
sums "$m" >"$work/model"
open_backup
check "the second backup holds the changed file" [ "$(cat "$b/small")" = second ]
sums "$b" | diff "$work/model" - >/dev/null || failed "the second backup differs from the volume"
close_backup

# --- Under load. Each line in the logs is a promise: that file was fsynced before.
cat >"$work/load.py" <<'PYTHON'
import hashlib, os, sys
folder, log, stop = sys.argv[1:4]
def content(number):
    seed = hashlib.sha256(str(number).encode()).digest()
    return seed * (1 + number * 7919 % 3000)
def durable(path, data):
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
if len(sys.argv) > 4:  # check what a backup holds against the promises
    last = int(sys.argv[4])
    with open(os.path.join(folder, "current"), "rb") as f:
        data = f.read()
    now = next((n for n in range(last, last + 100000) if content(n) == data), None)
    if now is None:
        sys.exit(f"current holds nothing that was ever written after {last}")
    # Those of a thousand before are deleted again.
    for number in range(max(0, last - 200, now - 999), last + 1):
        with open(os.path.join(folder, f"kept {number}"), "rb") as f:
            if f.read() != content(number):
                sys.exit(f"kept {number} differs")
    sys.exit(0)
number = 0
os.makedirs(folder, exist_ok=True)
with open(log, "w") as promises:
    while not os.path.exists(stop):
        durable(os.path.join(folder, f"kept {number}"), content(number))
        durable(os.path.join(folder, "next"), content(number))
        os.rename(os.path.join(folder, "next"), os.path.join(folder, "current"))
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        if number >= 1000:
            os.unlink(os.path.join(folder, f"kept {number - 1000}"))
        promises.write(f"{number}\n")
        promises.flush()
        number += 1
PYTHON
python3 "$work/load.py" "$m/load" "$work/promises" "$work/stop" 2>/dev/null & writer=$!
(exec 2>/dev/null
while [ ! -e "$work/stop" ]; do
  noise $((2 * mib)) >"$m/churn"
  mv "$m/churn" "$m/churned"
  nacre trim "$m" >/dev/null || sleep 0.1
done) & churner=$!
wait_for "the writer" test -s "$work/promises"
for round in 1 2 3 4; do
  sleep 1
  promised=$(tail -n 1 "$work/promises")
  expect 0 'files copied' nacre backup "$m" "$t"
  open_backup
  python3 "$work/load.py" "$b/load" - - "$promised" || failed "backup $round lacks what was promised"
  close_backup
done

# --- Killed on either side, still under load.
# begin_backup RATE: one that was seen under way. It is over before where this script, and not the backup,
# was kept waiting; then another one is begun.
begin_backup() {
  local _
  for _ in $(seq 20); do
    noise $((4 * mib)) >"$m/more"
    nacre backup --rate "$1" "$m" "$t" >"$work/backup.log" 2>&1 & client=$!
    while kill -0 $client 2>/dev/null; do
      grep -q 'backup .*1 under way' <<<"$(nacre stats "$m")" && return
      sleep 0.1
    done
    wait $client
  done
  failed "no backup was seen under way: $(cat "$work/backup.log")"
}
begin_backup 64K
promised_before=$promised
sleep 1
kill -9 $client
wait $client 2>/dev/null
wait_for "the hold to go" sh -c "! nacre stats '$m' | grep -q 'backup .*under way'"
open_backup
python3 "$work/load.py" "$b/load" - - "$promised_before" || failed "an interrupted backup spoilt the earlier one"
close_backup
promised=$(tail -n 1 "$work/promises")
expect 0 'files copied' nacre backup "$m" "$t"
open_backup
python3 "$work/load.py" "$b/load" - - "$promised" || failed "the repeated backup lacks what was promised"
close_backup

begin_backup 512K
# What the backup holds is closed; from the next commit on the volume is not.
promise_count=$(wc -l <"$work/promises")
wait_for "commits after that" sh -c "[ \$(wc -l <'$work/promises') -ge $((promise_count + 3)) ]"
kill -9 $(daemons)
check "the killed daemon stays" wait_for_daemons
wait $client
code=$?
: >"$work/stop"
wait $writer $churner 2>/dev/null
umount -l "$m" 2>/dev/null || fusermount3 -uz "$m"
# What was listed is still there, so it may well come to its end.
case $code in
0 | 4 | 8) ;;
*) failed "the backup of a killed daemon ended with $code: $(cat "$work/backup.log")" ;;
esac
open_backup
python3 "$work/load.py" "$b/load" - - "$promised" || failed "a kill of the daemon spoilt the earlier backup"
close_backup

# --- A volume that was not closed: a new backup, but no replacement.
expect 8 'was not closed cleanly' nacre backup "$v" "$t"
expect 0 'files copied' nacre backup "$v" "$work/unclean"
expect 0 'clean' fsck.nacre --deep "${secret[@]}" "$work/unclean"
mount_it
expect 0 'files copied' nacre backup "$v" "$t"
sums "$m" >"$work/model"
unmount_it

# --- Read-only.
mount_it -o ro
expect 0 'files copied' nacre backup "$m" "$t"
unmount_it
open_backup
sums "$b" | diff "$work/model" - >/dev/null || failed "the backup of a read-only mount differs"
close_backup

# --- Restored by mounting it: from then on it is a volume of its own.
expect 0 '' mount.nacre "${secret[@]}" "$t" "$b"
echo changed >"$b/small"
close_backup
expect 8 'mounted for writing since the last run' nacre backup "$v" "$t"
# Restored by copying it back.
cp -a "$t" "$work/restored"
expect 0 'clean' fsck.nacre --deep "${secret[@]}" "$work/restored"

# --- Another volume's backup.
make_volume "$work/other"
expect 0 'files copied' nacre backup "$work/other" "$work/other-backup"
expect 8 'backup of another volume' nacre backup "$v" "$work/other-backup"
expect 8 'a volume that is no backup' nacre backup "$v" "$work/other"

verdict
