#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files past 4 GiB: bytes on either side of each 32-bit limit, holes that stay holes and read as
# zeros, sizes that grow, shrink and come back.
. "$(dirname "$0")/../support/mount_harness.sh"

make_volume
mount_volume
cat >"$work/large.py" <<'CODE'
import errno, os, sys
path, command = sys.argv[1:3]
MARKS = [0, (1 << 31) - 3, (1 << 32) - 5, (1 << 32) + 70001, 9 << 30, (1 << 42) + 17]
def mark(at): return f"mark at {at:016d}".encode() * 1000
END = MARKS[-1] + len(mark(0))
if command == "write":
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    for at in MARKS:
        assert os.pwrite(fd, mark(at), at) == len(mark(at))
    os.fsync(fd)
fd = os.open(path, os.O_RDWR)
assert os.fstat(fd).st_size == END, os.fstat(fd)
assert os.fstat(fd).st_blocks * 512 < 16 << 20, f"holes take room: {os.fstat(fd).st_blocks} blocks"
for at in MARKS:
    assert os.pread(fd, len(mark(at)), at) == mark(at), f"wrong bytes at {at}"
    assert os.pread(fd, 100000, at + len(mark(at)) + 200000).strip(b"\0") == b"", "hole not zero"
# Walk data and holes: every mark is inside data, and there is a hole between marks.
position, found = 0, 0
while True:
    try:
        data = os.lseek(fd, position, os.SEEK_DATA)
    except OSError as error:
        assert error.errno == errno.ENXIO
        break
    hole = os.lseek(fd, data, os.SEEK_HOLE)
    assert data < hole <= END and hole - data < 4 << 20, (data, hole)
    found += sum(data <= at and at + len(mark(at)) <= hole for at in MARKS)
    position = hole
assert found == len(MARKS), f"{found} of {len(MARKS)} marks lie in data"
if command == "cut":
    os.ftruncate(fd, (1 << 32) + 70011)
    os.ftruncate(fd, 5 << 30)
    tail = os.pread(fd, 4096, (1 << 32) + 70001)
    assert tail[:10] == mark(MARKS[3])[:10] and tail[10:].strip(b"\0") == b"", "old bytes are back"
    os.fsync(fd)
    os.unlink(path)
CODE
python3 "$work/large.py" "$mnt/large" write || fail "at once"
remount
python3 "$work/large.py" "$mnt/large" read || fail "after a new mount"
cp "$mnt/large" "$mnt/copy" # asks for data and holes first
python3 "$work/large.py" "$mnt/copy" read || fail "the copy"
rm -f "$mnt/copy"
python3 "$work/large.py" "$mnt/large" cut || fail "shrinking and growing"

# Four GiB and a bit of real bytes only where asked for: they are cheap but not free.
if [ -n "${NACRE_LONG-}" ]; then
  yes "a line that repeats" | head -c $(((1 << 32) + 12345)) >"$mnt/real"
  sum=$(sha256sum <"$mnt/real")
  remount
  [ "$(sha256sum <"$mnt/real")" = "$sum" ] || fail "a file of 4 GiB changed over a new mount"
  [ "$sum" = "$(yes 'a line that repeats' | head -c $(((1 << 32) + 12345)) | sha256sum)" ] ||
    fail "a file of 4 GiB holds other bytes than written"
else
  skip_part "4 GiB of real bytes" "only with --long"
fi
finish
