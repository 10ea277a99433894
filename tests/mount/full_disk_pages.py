#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up under a mounted volume, as programs see it: what was refused is not shown as
stored, and as long as there is no room write() itself says no. Over both transports.
"""
import errno
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from loop_disk import LoopDisk  # noqa: E402
from rings import rings  # noqa: E402
from volume import Failure, Volume, full_counts, wait_for  # noqa: E402

MIB = 1 << 20
LINES = 3000 if full_counts() else 600  # of 64 KiB


def check(condition, what):
    if not condition:
        raise Failure(what)


def errno_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


def path(volume, name):
    return os.path.join(volume.mnt, name)


def wait_for_the_kernel(volume):
    """The daemon tells the kernel of refused pages a moment later; a question for the next hole
    waits for that."""
    fd = os.open(path(volume, f"fill.{4 * MIB}.0"), os.O_RDONLY)
    os.lseek(fd, 0, os.SEEK_HOLE)
    os.close(fd)


def fill(volume):
    """Until the volume takes no more, in ever smaller pieces."""
    for size in (4 * MIB, 256 << 10, 16 << 10, 4 << 10):
        refused = 0
        for i in range(4000):
            fd = os.open(path(volume, f"fill.{size}.{i}"), os.O_CREAT | os.O_WRONLY)
            try:
                if errno_of(lambda: (os.write(fd, os.urandom(size)), os.fsync(fd))):
                    refused += 1
            finally:
                os.close(fd)
            if refused == 3:
                break
        check(refused == 3, "the disk does not fill up")


def make_room(volume):
    for name in os.listdir(volume.mnt):
        if name.startswith("fill."):
            os.unlink(path(volume, name))
    volume.run("nacre", "sync", volume.mnt, expect=(0, 8))  # old refusals are told once
    probe = path(volume, "probe")

    def takes():
        fd = os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        try:
            return not errno_of(lambda: (os.write(fd, os.urandom(4 * MIB)), os.fsync(fd)))
        finally:
            os.close(fd)

    wait_for(takes, 120, "what was deleted gives no room")
    os.unlink(probe)


def refused_pages_vanish(volume):
    name = path(volume, "page")
    old, new = b"A" + os.urandom(4 * MIB), b"B" + os.urandom(4 * MIB)
    first = os.open(name, os.O_RDWR | os.O_CREAT)
    os.pwrite(first, old, 0)
    os.fsync(first)
    fill(volume)
    # What is kept in reserve for pages that the kernel took may have room for the first of them.
    for _ in range(16):
        refused = errno_of(lambda: (os.pwrite(first, new, 0), os.fsync(first)))
        if refused:
            break
        old, new = new, b"C" + os.urandom(4 * MIB)
    check(refused == errno.ENOSPC, f"4 MiB on a full disk, 16 times: errno {refused}")
    wait_for_the_kernel(volume)
    second = os.open(name, os.O_RDWR)
    # Either nothing is left of what was refused, or it waits for room.
    code = errno_of(os.fsync, second)
    check(code in (0, errno.ENOSPC), f"fsync by another opening of the file: errno {code}")
    shown = os.pread(second, len(old), 0)
    drop_caches()
    stored = os.pread(second, len(old), 0)
    check(shown == stored, "what fsync called stored is something else without the kernel's cache")
    # 4 KiB may have found room where 4 MiB did not.
    for at in range(0, len(old), 4096):
        check(stored[at:at + 4096] in (old[at:at + 4096], new[at:at + 4096]), f"garbage at {at}")
    os.close(first)
    make_room(volume)
    check(errno_of(os.fsync, second) == 0, "fsync fails once there is room")
    check(os.pread(second, len(old), 0) == stored, "room for all changes a file's content")
    os.close(second)
    os.unlink(name)


def refused_file_keeps_its_size(volume):
    """What cp leaves of a file that found no room is the same with and without the cache."""
    source = os.path.join(volume.work, "source")
    with open(source, "wb") as f:
        f.write(os.urandom(64 * MIB))
    copied = subprocess.run(["cp", source, path(volume, "copy")], check=False, capture_output=True)
    check(copied.returncode != 0, "cp of 64 MiB to a full disk succeeds")
    wait_for_the_kernel(volume)
    size = os.path.getsize(path(volume, "copy"))
    with open(path(volume, "copy"), "rb") as f:
        shown = f.read()
    drop_caches()
    check(os.path.getsize(path(volume, "copy")) == size,
          f"cp left {size} bytes, later there are {os.path.getsize(path(volume, 'copy'))}")
    with open(path(volume, "copy"), "rb") as f:
        check(f.read() == shown, "cp left something that changes by itself")
    os.unlink(path(volume, "copy"))
    os.unlink(source)


def log_keeps_its_lines(volume):
    """A program that goes on after each error, as loggers do."""
    for i in range(1, 5):
        os.unlink(path(volume, f"fill.{4 * MIB}.{i}"))
    volume.run("nacre", "sync", volume.mnt, expect=(0, 8))
    wait_for(lambda: os.statvfs(volume.mnt).f_bavail * 4096 > 4 * MIB, 120,
             "what was deleted gives no room")
    name = path(volume, "log")
    log = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    taken = refused = 0
    for i in range(LINES):
        line = f"{i:08} ".encode() + os.urandom(32 << 10).hex().encode()[:65526] + b"\n"
        code = errno_of(os.write, log, line)
        check(code in (0, errno.ENOSPC), f"a log on a full disk: errno {code}")
        taken += code == 0
        refused += code != 0
    errno_of(os.fsync, log)
    os.close(log)
    drop_caches()
    with open(name, "rb") as f:
        stored = sum(len(line) == 65535 and not line.count(0) for line in f.read().split(b"\n"))
    print(f"  a log of {LINES} lines: {taken} taken, {refused} refused, {stored} stored", flush=True)
    check(taken > 0 and stored >= taken - 2, f"{taken} lines were taken, {stored} are there")
    check(refused > 0, f"{LINES} lines do not fill the disk")
    os.unlink(name)


def shell_is_told(volume):
    """echo text >file, of a new file and of one that was there."""
    for name in ("new", "config"):
        done = subprocess.run(["bash", "-c", f"echo 'a line of text' >'{path(volume, name)}'"],
                              check=False, capture_output=True)
        drop_caches()
        size = os.path.getsize(path(volume, name))
        check(done.returncode != 0 or size > 0,
              f"echo >{name} on a full disk says that all is well, and the file is empty")
        print(f"  echo >{name}: status {done.returncode}, {size} bytes", flush=True)


def full_disk_stays_full(volume):
    """All these leave it full for the next."""
    with open(path(volume, "config"), "w", encoding="ascii") as f:
        f.write("the old text\n")
    volume.run("nacre", "sync", volume.mnt, expect=(0, 8))
    fill(volume)
    for part in (shell_is_told, refused_file_keeps_its_size, log_keeps_its_lines):
        print(f"  {part.__name__}", flush=True)
        part(volume)
    make_room(volume)


def run(transport):
    with LoopDisk("full-disk-pages", 128 * MIB) as disk, Volume("full-disk-pages") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make()
        volume.mount("-o", f"commit=1,io_uring={transport}")
        for part in (refused_pages_vanish, full_disk_stays_full):
            print(f"io_uring={transport}: {part.__name__}", flush=True)
            part(volume)
        volume.unmount(expect=(0, 8))
        if os.path.ismount(volume.mnt):
            volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")


def main():
    if sys.argv[1:] != ["--io-uring"]:
        run("off")
        return
    with rings("full_disk_pages"):
        run("on")


if __name__ == "__main__":
    main()
