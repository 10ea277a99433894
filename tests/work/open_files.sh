#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files that live on after their last name is gone, shared memory mappings, O_DIRECT and locks:
# what programs do with files that are open.
. "$(dirname "$0")/../support/mount_harness.sh"

make_volume
mount_volume
cat >"$work/open.py" <<'CODE'
import fcntl, mmap, os, sys
top = sys.argv[1]
os.chdir(top)

# Unlinked: readable, writable, growable; fstat says no link; gone afterwards.
fd = os.open("unlinked", os.O_CREAT | os.O_RDWR, 0o600)
os.write(fd, b"a" * 300_000)
os.unlink("unlinked")
assert os.fstat(fd).st_nlink == 0
assert os.pwrite(fd, b"b" * 10, 500_000) == 10
os.fsync(fd)
assert os.pread(fd, 300_000, 0) == b"a" * 300_000
assert os.pread(fd, 200_010, 300_000) == b"\0" * 200_000 + b"b" * 10
os.ftruncate(fd, 5)
assert os.pread(fd, 100, 0) == b"a" * 5
os.close(fd)

# Replaced by rename while open: the old content stays with the old descriptor.
open("a", "w").write("old")
old = os.open("a", os.O_RDONLY)
open("b", "w").write("new")
os.rename("b", "a")
assert os.read(old, 10) == b"old" and open("a").read() == "new"
os.close(old)

# No name at first, given one later.
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
os.write(fd, b"unnamed")
os.link(f"/proc/self/fd/{fd}", "named", dst_dir_fd=os.open(".", os.O_RDONLY))
os.close(fd)
assert open("named").read() == "unnamed"

# Two mappings and a descriptor see one another's writes.
fd = os.open("mapped", os.O_CREAT | os.O_RDWR, 0o644)
os.ftruncate(fd, 1_000_000)
first = mmap.mmap(fd, 1_000_000)
second = mmap.mmap(fd, 1_000_000)
first[123_456:123_466] = b"0123456789"
assert second[123_456:123_466] == b"0123456789"
assert os.pread(fd, 10, 123_456) == b"0123456789"
os.pwrite(fd, b"WRITE", 65_534)
assert first[65_534:65_539] == b"WRITE"
first.flush()
child = os.fork()
if child == 0:
    second[999_999:1_000_000] = b"!"
    os._exit(0)
os.waitpid(child, 0)
assert first[999_999:] == b"!"
private = mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
private[0:4] = b"mine"
assert os.pread(fd, 4, 0) == b"\0" * 4
first.close(), second.close(), private.close(), os.close(fd)

# Past the page cache and through it see the same bytes.
buffer = mmap.mmap(-1, 8192)
buffer[:] = b"d" * 8192
fd = os.open("direct", os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o644)
assert os.pwritev(fd, [buffer], 4096) == 8192
assert open("direct", "rb").read() == b"\0" * 4096 + b"d" * 8192
with open("direct", "r+b") as f:
    f.seek(5000)
    f.write(b"through")
back = mmap.mmap(-1, 8192)
assert os.preadv(fd, [back], 4096) == 8192
assert back[904:911] == b"through"
os.close(fd)

# Locks hold between processes.
fd = os.open("locked", os.O_CREAT | os.O_RDWR, 0o644)
fcntl.lockf(fd, fcntl.LOCK_EX, 10, 5)
child = os.fork()
if child == 0:
    other = os.open("locked", os.O_RDWR)
    try:
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 7)
        os._exit(1)
    except BlockingIOError:
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 20)
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "a lock of another process was ignored"
fcntl.flock(fd, fcntl.LOCK_EX)
child = os.fork()
if child == 0:
    other = os.open("locked", os.O_RDWR)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os._exit(1)
    except BlockingIOError:
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "flock of another process was ignored"
os.close(fd)

# Appends of several processes do not overwrite one another.
children = []
for writer in range(4):
    child = os.fork()
    if child == 0:
        fd = os.open("appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        for line in range(500):
            os.write(fd, f"{writer} {line:05d}\n".encode())
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
lines = open("appended").read().splitlines()
assert len(lines) == 2000 and len(set(lines)) == 2000, f"{len(lines)} lines"
CODE
python3 "$work/open.py" "$mnt" || fail "open files"
cat >"$work/after.py" <<'CODE'
import os, sys
os.chdir(sys.argv[1])
names = sorted(os.listdir("."))
assert names == ["a", "appended", "direct", "locked", "mapped", "named"], names
mapped = open("mapped", "rb").read()
assert mapped[123_456:123_466] == b"0123456789" and mapped[65_534:65_539] == b"WRITE"
assert mapped[-1:] == b"!" and len(mapped) == 1_000_000
assert open("direct", "rb").read()[5000:5007] == b"through"
CODE
remount
python3 "$work/after.py" "$mnt" || fail "after a new mount"
finish
