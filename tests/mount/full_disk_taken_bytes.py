#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What write() took, fsync stores: on a disk of 96 MiB at many levels between room and none, for
small and large chunks, new files and files that are overwritten. Only write() may say ENOSPC.
"""
import errno
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import Failure, Volume, full_counts, skip, wait_for  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
DISK_BYTES = 96 * MIB
BASE_BYTES = 12 * MIB
LEVELS = [24, 16, 12, 10, 8, 6, 4, 3, 2, 1] if full_counts() else [12, 8, 4, 2, 1]  # MiB
CHUNKS = ["64K", "1M"]


class SmallDisk:
    """In memory; unmounted however the test ends. Enter it before the Volume."""

    def __init__(self):
        if os.getuid() != 0:
            skip("full_disk_taken_bytes", "needs root to mount a disk of its own")
        self.path = tempfile.mkdtemp(prefix="nacre-small-disk.")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs",
                                  self.path], check=False, capture_output=True)
        if mounted.returncode != 0:
            os.rmdir(self.path)
            skip("full_disk_taken_bytes", f"no tmpfs: {mounted.stderr.decode().strip()}")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        def is_free():
            return subprocess.run(["umount", self.path], check=False,
                                  capture_output=True).returncode == 0

        wait_for(is_free, 30, f"{self.path} stays mounted")
        os.rmdir(self.path)


def room_of(volume):
    info = os.statvfs(volume.mnt)
    return info.f_bavail * info.f_frsize


def leave_room(volume, disk, wanted):
    """Something else on the disk takes all but this."""
    foreign = os.open(os.path.join(disk.path, "foreign"), os.O_RDWR | os.O_CREAT)

    def is_left():
        too_much = room_of(volume) - wanted
        size = max(0, os.fstat(foreign).st_size + too_much)
        if too_much > 0:
            os.posix_fallocate(foreign, 0, size)
        else:
            os.truncate(foreign, size)
        return abs(room_of(volume) - wanted) < 64 * KIB

    try:
        wait_for(is_left, 60, f"there is no level of {wanted} bytes")
    finally:
        os.close(foreign)


class Written:
    """A file, and what it should hold."""

    def __init__(self, volume, name, content=b""):
        self.name = name
        self.path = os.path.join(volume.mnt, name)
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
        self.content = bytearray(content)

    def put(self, at, piece):
        """Whether write() took all of it."""
        try:
            count = os.pwrite(self.fd, piece, at)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return False
        if len(self.content) < at:
            self.content += bytes(at - len(self.content))
        self.content[at:at + count] = piece[:count]
        return count == len(piece)

    def sync(self, when):
        try:
            os.fsync(self.fd)
        except OSError as error:
            raise Failure(f"{when}: fsync of {self.name} refuses what write() took: "
                          f"{os.strerror(error.errno)}") from None

    def check(self, when):
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        stored = os.pread(self.fd, len(self.content) + 1, 0)
        if stored != self.content:
            at = next((i for i, (a, b) in enumerate(zip(stored, self.content)) if a != b), -1)
            raise Failure(f"{when}: {self.name} has {len(stored)} bytes of {len(self.content)}, "
                          f"another one at {at}")

    def close(self):
        os.close(self.fd)


def new_file(volume, base, when):
    """Appended to in pieces of many sizes, until write() refuses."""
    file = Written(volume, "new")
    for size in [100, 5000, 64 * KIB, 300 * KIB, MIB, 3 * MIB] * 4:
        if not file.put(len(file.content), os.urandom(size)):
            break
    return [file]


def large_call(volume, base, when):
    """Calls of write() that are as large as the room, or larger."""
    file = Written(volume, "large")
    for size in (16, 8, 4, 2, 1):
        file.put(len(file.content), os.urandom(size * MIB))
    return [file]


def many_files(volume, base, when):
    """None is synced before all are written."""
    files = []
    for i in range(60):
        files.append(Written(volume, f"many{i}"))
        if not files[-1].put(0, os.urandom(200 * KIB)):
            break
    return files


def overwrites(volume, base, when):
    """A part of each mebibyte, which may be stored as a whole."""
    rounds = random.Random(when)
    for i in range(36):
        if not base.put(i % 12 * MIB + rounds.randrange(600 * KIB), os.urandom(300 * KIB)):
            break
    return []


def scattered(volume, base, when):
    rounds = random.Random(when)
    for _ in range(400):
        if not base.put(rounds.randrange(BASE_BYTES - 4 * KIB), os.urandom(700)):
            break
    return []


def at_level(volume, disk, base, level, pattern, chunk):
    when = f"chunks of {chunk}, {level} MiB left, {pattern.__name__}"
    leave_room(volume, disk, level * MIB)
    files = [*pattern(volume, base, when), base]
    taken = sum(len(file.content) for file in files) - BASE_BYTES
    for file in files:
        file.sync(when)
    for file in files:
        file.check(when)
    print(f"  {when}: {taken >> 10} KiB of new files", flush=True)
    for file in files[:-1]:
        file.close()
        os.unlink(file.path)


def sweep(chunk):
    with SmallDisk() as disk, Volume("full-disk-taken-bytes") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make("--chunk-size", chunk, "--codec", "none")
        volume.mount("-o", "commit=1,io_uring=off")
        base = Written(volume, "base")
        for at in range(0, BASE_BYTES, MIB):
            if not base.put(at, os.urandom(MIB)):
                raise Failure(f"{BASE_BYTES} bytes do not fit")
        base.sync("at first")
        for level in LEVELS:
            for pattern in (new_file, large_call, many_files, overwrites, scattered):
                at_level(volume, disk, base, level, pattern, chunk)
                os.unlink(os.path.join(disk.path, "foreign"))
                wait_for(lambda: room_of(volume) > (LEVELS[0] + 4) * MIB, 60,
                         "what was deleted gives no room")
        base.close()
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.mount("-o", "io_uring=off")
        again = Written(volume, "base", base.content)
        again.check(f"chunks of {chunk}, mounted again")
        again.close()
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")


for chunk_size in CHUNKS:
    sweep(chunk_size)
