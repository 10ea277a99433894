#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rsync -aHAX there and back leaves nothing to transfer: modes, owners, times, hard links, ACLs,
# extended attributes, sparse files and (as root) devices survive both ways and a new mount.
. "$(dirname "$0")/../support/mount_harness.sh"

command -v rsync >/dev/null || skip "there is no rsync"
tree=$work/tree
python3 "$source_root/tests/support/make_tree.py" "$tree" 2000 3

truncate -s 48M "$tree/sparse"
printf middle | dd of="$tree/sparse" bs=1 seek=$((32 << 20)) conv=notrunc status=none
mkfifo "$tree/fifo"
printf 'with a %s\n' attribute >"$tree/labelled"
attributes=-A
if setfattr -n user.colour -v green "$tree/labelled" 2>/dev/null; then
  setfattr -n user.empty -v '' "$tree/labelled"
  setfattr -n user.large -v "$(head -c 3000 /dev/zero | tr '\0' x)" "$tree/labelled"
  setfattr -n user.on-folder -v 1 "$tree"
  attributes=-AX
else
  skip_part "extended attributes" "the folder for temporary files takes none"
fi
if setfacl -m u:1234:rw,g:4321:r "$tree/labelled" 2>/dev/null; then
  mkdir "$tree/shared"
  setfacl -d -m u:1234:rwx "$tree/shared"
  setfacl -m u:1234:rwx,m::rx "$tree/shared"
  touch "$tree/shared/inherits"
else
  skip_part "ACLs" "the folder for temporary files takes none"
  attributes=${attributes/A/}
  [ "$attributes" != - ] || attributes=
fi
if is_root; then
  mknod "$tree/null" c 1 3
  mknod "$tree/disk" b 7 200
  python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$tree/socket"
  touch "$tree/owned"
  chown 1234:4321 "$tree/owned"
  chown -h 77:88 "$tree/dangling"
else
  skip_part "devices and owners" "needs root"
fi

# rsync compares whole seconds, so none may be the one in which the copies are made.
find "$tree" -newermt '2025-01-01' -exec touch -h -d '2024-02-29 23:59:59.987654321' {} +

# nothing_left FROM TO: a dry run with checksums itemises nothing, in either direction.
nothing_left() {
  local left
  left=$(rsync -aH $attributes --checksum --delete --itemize-changes --dry-run "$1/" "$2/")
  [ -z "$left" ] || fail "$1 to $2, left to transfer: $(head -n 12 <<<"$left")"
}

make_volume
mount_volume
rsync -aHS $attributes "$tree/" "$mnt/tree/"
nothing_left "$tree" "$mnt/tree"
same_tree "$tree" "$mnt/tree"
remount
nothing_left "$tree" "$mnt/tree"
same_tree "$tree" "$mnt/tree"
used_kib=$(du -sk "$mnt/tree/sparse" | cut -f1)
[ "$used_kib" -lt 2048 ] || fail "the sparse file takes $used_kib KiB in the volume"

rsync -aHS $attributes "$mnt/tree/" "$work/back/"
nothing_left "$tree" "$work/back"
nothing_left "$mnt/tree" "$work/back"
same_tree "$tree" "$work/back"
if [ "$attributes" = -AX ]; then
  getfacl -R -n -p "$tree/shared" | sed "s|$tree||" >"$work/acl.a"
  getfacl -R -n -p "$mnt/tree/shared" | sed "s|$mnt/tree||" >"$work/acl.b"
  cmp "$work/acl.a" "$work/acl.b" || fail "ACLs differ: $(diff "$work/acl.a" "$work/acl.b")"
fi

# A second run over changed files moves just those.
echo more >>"$tree/labelled"
rm "$tree/fifo"
moved=$(rsync -aHS $attributes --delete --itemize-changes "$tree/" "$mnt/tree/" | grep -vc '/$')
[ "$moved" = 2 ] || fail "rsync moved $moved entries where 2 changed"
nothing_left "$tree" "$mnt/tree"
finish
