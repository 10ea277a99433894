#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A disk that does not answer (frozen): umount(8) returns, the daemon says what it waits for; it ends well when the disk
# answers again, and a second SIGTERM gives the mount point back although it never does.
. "$(dirname "$0")/../support/mount_harness.sh"
. "$(dirname "$0")/../support/loop_disk.sh"
command -v fsfreeze >/dev/null || skip "there is no fsfreeze"

make_disk 128M
# Whatever happens it is thawed, or nothing could be cleaned up; the status stays.
trap 'code=$?; trap - ERR; set +e; fsfreeze -u "$disk" 2>/dev/null; (exit $code); cleanup' EXIT
make_volume
says() {
  local tries
  for tries in $(seq 3000); do
    grep -q "$1" "$work/log" && return 0
    sleep 0.1
  done
  return 1
}
gone() {
  local tries
  for tries in $(seq 3000); do
    mountpoint -q "$mnt" || return 0
    sleep 0.1
  done
  return 1
}

# It answers late: nothing is lost.
mount_volume -o commit=300 --log-file "$work/log"
echo synced >"$mnt/synced"
"$NACRE_BIN/nacre" sync "$mnt"
echo late >"$mnt/late"
fsfreeze -f "$disk"
kill -TERM $(daemons_of "$volume")
says 'waiting for .*volume' || fail "the log does not say what is waited for: $(cat "$work/log")"
fsfreeze -u "$disk"
wait_for_daemon "$volume" || fail "the daemon does not end though the disk answers"
grep -q 'everything is durable' "$work/log" || fail "the end was not clean: $(cat "$work/log")"
mount_volume -o commit=300 --log-file "$work/log2"
[ "$(cat "$mnt/late")" = late ] || fail "what was written before SIGTERM is lost"

# nacre umount and nacre sync say what they wait for, and go on when the disk does.
echo patient >"$mnt/patient"
fsfreeze -f "$disk"
"$NACRE_BIN/nacre" sync "$mnt" 2>"$work/log" &
sync=$!
says 'waiting for the volume' || fail "nacre sync does not say what it waits for"
"$NACRE_BIN/nacre" umount "$mnt" 2>"$work/log" &
umount=$!
says 'waiting for the volume' || fail "nacre umount does not say what it waits for"
kill -0 "$sync" "$umount" || fail "it did not wait for the disk"
fsfreeze -u "$disk"
wait "$sync" || fail "nacre sync ended with $? although the disk answers"
wait "$umount" || fail "nacre umount ended with $? although the disk answers"
! mountpoint -q "$mnt" || fail "nacre umount ended well, but the volume is mounted"
mount_volume -o commit=300 --log-file "$work/log2"
[ "$(cat "$mnt/patient")" = patient ] || fail "what nacre umount waited for is lost"

# umount(8), lazy or not, does not wait for the disk: the daemon does, and says so.
ended() {
  local tries
  for tries in $(seq 3000); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  return 1
}
mv "$work/log2" "$work/log"
for way in "" --lazy; do
  remount -o commit=300 --log-file "$work/log"
  : >"$work/log"
  echo "umount $way" >"$mnt/umount$way"
  fsfreeze -f "$disk"
  umount $way "$mnt" &
  umount=$!
  ended "$umount" || fail "umount $way waits for a disk that does not answer"
  wait "$umount" || fail "umount $way ended with $?"
  ! mountpoint -q "$mnt" || fail "umount $way ended well, but the volume is mounted"
  says 'waiting for .*volume' || fail "the log does not say what is waited for: $(cat "$work/log")"
  [ -n "$(daemons_of "$volume")" ] || fail "the daemon is gone, and the disk did not answer"
  ! grep -q 'everything is durable' "$work/log" || fail "durable, and the disk did not answer?"
  fsfreeze -u "$disk"
  wait_for_daemon "$volume" || fail "the daemon does not end though the disk answers"
  grep -q 'everything is durable' "$work/log" || fail "the end was not clean: $(cat "$work/log")"
  mount_volume
  [ "$(cat "$mnt/umount$way")" = "umount $way" ] || fail "what was written before umount $way is lost"
done

# It never answers: a second SIGTERM frees the mount point.
remount -o commit=300 --log-file "$work/log"
: >"$work/log"
echo lost >"$mnt/lost"
fsfreeze -f "$disk"
daemon=$(daemons_of "$volume")
kill -TERM "$daemon"
says 'another SIGTERM gives up' || fail "the log does not offer to give up: $(cat "$work/log")"
kill -TERM "$daemon"
gone || fail "a second SIGTERM does not free the mount point"
says 'giving up' || fail "the log does not say that it gave up"
fsfreeze -u "$disk"
wait_for_daemon "$volume"
mount_volume
[ "$(cat "$mnt/synced")" = synced ] || fail "what was synced is lost"
[ "$(cat "$mnt/late")" = late ] || fail "what was committed is lost"
finish
