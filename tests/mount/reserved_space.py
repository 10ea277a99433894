#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fallocate(2) reserves room on a real disk: others fill it, and what was reserved takes its first
writes by write(), by a mapping and past the cache, also after the daemon was killed. Over both
transports.
"""
import errno
import mmap
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from loop_disk import LoopDisk  # noqa: E402
from rings import rings  # noqa: E402
from volume import Failure, Volume  # noqa: E402

MIB = 1 << 20
PAGE = 4096
SIZE = 12 * MIB
PART = SIZE // 3


def check(condition, what):
    if not condition:
        raise Failure(what)


def room(volume):
    space = os.statvfs(volume.mnt)
    return space.f_bavail * space.f_frsize


def path(volume, name):
    return os.path.join(volume.mnt, name)


def fill(volume, name):
    """Until the volume takes no more, in ever smaller pieces."""
    for size in (4 * MIB, 256 << 10, PAGE):
        for count in range(2000):
            fd = os.open(path(volume, f"{name}.{size}.{count}"), os.O_CREAT | os.O_WRONLY)
            try:
                os.write(fd, os.urandom(size))
                os.fsync(fd)
            except OSError as error:
                check(error.errno == errno.ENOSPC, f"filling: {error}")
                break
            finally:
                os.close(fd)
        else:
            raise Failure(f"{name}: a disk without end")


def take_the_rest(disk):
    """Another program takes what is left of the disk itself."""
    fd = os.open(os.path.join(disk.path, "foreign"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    size = MIB
    while size >= PAGE:
        try:
            os.posix_fallocate(fd, os.fstat(fd).st_size, size)
        except OSError as error:
            check(error.errno == errno.ENOSPC, f"filling the disk: {error}")
            size //= 2
    os.close(fd)


def reserve(volume):
    before = room(volume)
    log = os.open(path(volume, "log"), os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(log, 0, SIZE)
    os.fsync(log)
    check(before - room(volume) >= SIZE, f"df shows {before - room(volume)} bytes less")
    check(os.fstat(log).st_blocks * 512 >= SIZE, f"{os.fstat(log).st_blocks} blocks are reserved")
    other = os.open(path(volume, "other"), os.O_RDWR | os.O_CREAT)
    try:
        os.posix_fallocate(other, 0, before - SIZE // 2)
        raise Failure("more than there is can be reserved in two files")
    except OSError as error:
        check(error.errno == errno.ENOSPC, f"fallocate of too much: {error}")
    os.close(other)
    os.unlink(path(volume, "other"))
    return log


def by_write(log, at, numbers):
    pages = list(range(PART // PAGE))
    numbers.shuffle(pages)
    content = bytearray(PART)
    for i, page in enumerate(pages):
        piece = numbers.randbytes(PAGE)
        check(os.pwrite(log, piece, at + page * PAGE) == PAGE, "a short write")
        content[page * PAGE:(page + 1) * PAGE] = piece
        if i % 50 == 0:
            os.fdatasync(log)
    return content


def by_mapping(log, at, numbers):
    content = numbers.randbytes(PART)
    mapping = mmap.mmap(log, SIZE)
    for piece in range(0, PART, 64 << 10):
        mapping[at + piece:at + piece + (64 << 10)] = content[piece:piece + (64 << 10)]
    mapping.flush()
    mapping.close()
    return content


def past_the_cache(log, at, numbers):
    content = numbers.randbytes(PART)
    direct = os.open(f"/proc/self/fd/{log}", os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, PART) as memory:
        memory.write(content)
        view = memoryview(memory)
        for piece in range(0, PART, MIB):
            check(os.pwrite(direct, view[piece:piece + MIB], at + piece) == MIB, "a short write")
        view.release()
    os.close(direct)
    return content


def run(transport):
    seed = int(os.environ.get("NACRE_SEED") or random.randrange(1 << 32))
    print(f"io_uring={transport}: NACRE_SEED={seed}", flush=True)
    options = ("-o", f"commit=1,io_uring={transport}")
    with LoopDisk("reserved-space", 192 * MIB) as disk, Volume("reserved-space") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make()
        volume.mount(*options)
        empty = room(volume)
        log = reserve(volume)
        fill(volume, "filler")
        take_the_rest(disk)
        content = bytearray(SIZE)
        numbers = random.Random(seed)
        for i, write in enumerate((by_write, by_mapping, past_the_cache)):
            try:
                content[i * PART:(i + 1) * PART] = write(log, i * PART, numbers)
                os.fsync(log)
            except OSError as error:
                raise Failure(f"{write.__name__}: a write into what was reserved: {error}") from error
            # Behind what is reserved there is no room. What fsync refuses goes with the daemon.
            try:
                os.pwrite(log, numbers.randbytes(4 * MIB), SIZE)
                os.fsync(log)
                raise Failure("a full disk took more than was reserved")
            except OSError as error:
                check(error.errno == errno.ENOSPC, f"behind the reserved range: {error}")
            os.close(log)
            volume.kill()
            volume.detach()
            volume.mount(*options)
            log = os.open(path(volume, "log"), os.O_RDWR)
            check(os.pread(log, SIZE, 0) == bytes(content), f"{write.__name__}: other content")
            print(f"  {write.__name__}: all there", flush=True)
        os.close(log)
        os.unlink(os.path.join(disk.path, "foreign"))
        for name in os.listdir(volume.mnt):
            os.unlink(path(volume, name))
        volume.run("nacre", "sync", volume.mnt)
        volume.run("nacre", "trim", volume.mnt)
        check(room(volume) > empty - 24 * MIB, f"{room(volume)} of {empty} bytes came back")
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")


def main():
    if sys.argv[1:] != ["--io-uring"]:
        run("off")
        return
    with rings("reserved_space"):
        run("on")


if __name__ == "__main__":
    main()
