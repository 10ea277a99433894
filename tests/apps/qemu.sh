#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disks of virtual machines: images of every kind written past the cache and with native AIO,
# preallocated, discarded, resized, with snapshots; and a guest's file system on one, trimmed.
. "$(dirname "$0")/app_harness.sh"
needs qemu-img qemu-io mkfs.ext4
size=$(counts 64M 512M)
quiet() { "$@" >"$work/quiet.log" 2>&1 || { cat "$work/quiet.log"; return 1; }; }
io() { quiet qemu-io "$@" && ! grep -iE 'failed|verif' "$work/quiet.log"; }

images() {
  rm -f ./*
  local cache
  qemu-img create -q -f raw r.raw "$size"
  qemu-img create -q -f qcow2 -o preallocation=metadata q.qcow2 "$size"
  qemu-img create -q -f raw -o preallocation=falloc f.raw "$size"
  for cache in none directsync writeback unsafe; do
    for image in raw:r.raw raw:f.raw qcow2:q.qcow2; do
      io -f "${image%%:*}" -t $cache -c 'write -P 1 0 1M' -c 'write -P 2 4M 64k' -c 'write -z 5M 1M' \
        -c 'read -P 1 0 1M' -c 'read -P 2 4M 64k' -c 'read -P 0 5M 1M' "${image#*:}"
      io -f "${image%%:*}" -t $cache -d unmap -c 'write -P 3 8M 4M' -c 'discard 9M 1M' -c 'flush' \
        -c 'read -P 3 8M 1M' -c 'read -P 3 10M 2M' "${image#*:}"
    done
  done
  io -f raw -t none -i native -c 'aio_write -P 4 16M 1M' -c 'aio_write -P 5 17M 1M' -c aio_flush -c 'read -P 4 16M 1M' r.raw
  io -f raw -t none -i io_uring -c 'aio_write -P 6 18M 1M' -c aio_flush -c 'read -P 6 18M 1M' r.raw
  io -f raw -t none -c 'read -P 5 17M 1M' r.raw
  qemu-img snapshot -c before q.qcow2
  io -f qcow2 -t none -c 'write -P 9 0 8M' q.qcow2
  qemu-img snapshot -a before q.qcow2
  qemu-img resize -q q.qcow2 +16M && qemu-img resize -q -f raw r.raw +16M
  qemu-img convert -t none -T none -O qcow2 -c r.raw c.qcow2
  qemu-img convert -t none -T none -W -m 8 -O raw c.qcow2 back.raw
  looks
}
looks() {
  qemu-img check -q q.qcow2 && qemu-img check -q c.qcow2
  qemu-img compare -q r.raw c.qcow2 && qemu-img compare -q r.raw back.raw && echo the same
  local image
  for image in *.raw; do sha256sum "$image"; done
  for image in *.qcow2; do qemu-img convert -O raw "$image" "$work/flat" && sha256sum <"$work/flat"; done
  rm -f "$work/flat"
}
start_volume
tell qemu-utils
both images
again looks
[ "$(du -k "$app/back.raw" | cut -f1)" -lt 60000 ] || fail "the converted image has no holes: $(du -k "$app/back.raw")"

# A guest's file system, by the loop device.
if is_root && truncate -s 300M "$mnt/disk" && mkfs.ext4 -q "$mnt/disk" && mkdir "$work/guest" &&
  mount -o loop,discard "$mnt/disk" "$work/guest" 2>"$work/loop.log"; then
  cp -a "$source_root/tests" "$work/guest/" && head -c 100M /dev/urandom >"$work/guest/large"
  sum=$(sha256sum <"$work/guest/large")
  umount "$work/guest"
  e2fsck -fn "$mnt/disk" >"$work/e2fsck.log" 2>&1 || fail "e2fsck: $(tail -n 3 "$work/e2fsck.log")"
  remount
  mount -o loop,discard "$mnt/disk" "$work/guest"
  [ "$(sha256sum <"$work/guest/large")" = "$sum" ] || fail "the file in the image has changed"
  before=$(du -k "$mnt/disk" | cut -f1)
  rm "$work/guest/large" && sync -f "$work/guest" && fstrim "$work/guest" && umount "$work/guest"
  [ "$(du -k "$mnt/disk" | cut -f1)" -lt $((before - 80000)) ] || fail "trim gives no room back"
  # And as it is after the daemon's death, in the middle of writing.
  mount -o loop "$mnt/disk" "$work/guest"
  (while :; do cp "$source_root/README.md" "$work/guest/r$RANDOM" && sync -f "$work/guest"; done) 2>/dev/null &
  writer=$!
  sleep 2
  kill -9 $(daemons_of "$volume")
  kill $writer 2>/dev/null || :
  wait $writer 2>/dev/null || :
  umount "$work/guest" 2>/dev/null || umount -l "$work/guest"
  wait_for_daemon "$volume"
  detach "$mnt"
  mount_volume
  code=0
  e2fsck -fy "$mnt/disk" >"$work/e2fsck.log" 2>&1 || code=$?
  [ $code -le 1 ] || fail "e2fsck after kill -9: $code: $(tail -n 3 "$work/e2fsck.log")"
  e2fsck -fn "$mnt/disk" >/dev/null 2>&1 || fail "the guest's file system is damaged"
else
  skip_part "a guest's file system" "$(cat "$work/loop.log" 2>/dev/null || echo "needs root")"
fi
finish
