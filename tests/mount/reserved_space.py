#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fallocate(2) sets room aside on a real disk of 256 MiB: others fill it, and a log of 16 MiB is
written over and over, by write() and by a mapping, with the daemon killed in between.
"""
import errno
import mmap
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from loop_disk import LoopDisk  # noqa: E402
from volume import Failure, Volume, full_counts  # noqa: E402

MIB = 1 << 20
LOG_SIZE = 16 * MIB
WRITES = 6000 if full_counts() else 600  # between two kills
ROUNDS = 6 if full_counts() else 3
PAGE = 8192


def check(condition, what):
    if not condition:
        raise Failure(what)


def room(volume):
    space = os.statvfs(volume.mnt)
    return space.f_bavail * space.f_frsize


def path(volume, name):
    return os.path.join(volume.mnt, name)


def is_full(volume, name):
    """Writes 1 MiB to a file of its own."""
    fd = os.open(path(volume, name), os.O_CREAT | os.O_WRONLY)
    try:
        os.write(fd, os.urandom(MIB))
        os.fsync(fd)
        return False
    except OSError as error:
        check(error.errno == errno.ENOSPC, f"filling: {error}")
        return True
    finally:
        os.close(fd)


def fill(volume, name):
    for count in range(512):
        if is_full(volume, f"{name}.{count}"):
            return
    raise Failure("a disk of 256 MiB takes 512 MiB")


def reserve(volume):
    before = room(volume)
    log = os.open(path(volume, "log"), os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(log, 0, LOG_SIZE)
    os.fsync(log)
    check(before - room(volume) >= LOG_SIZE,
          f"df shows {before - room(volume)} bytes less after fallocate of {LOG_SIZE}")
    check(os.fstat(log).st_blocks * 512 >= LOG_SIZE, f"{os.fstat(log).st_blocks} blocks reserved")
    other = os.open(path(volume, "other"), os.O_RDWR | os.O_CREAT)
    try:
        os.posix_fallocate(other, 0, before - LOG_SIZE // 2)
        raise Failure("more than there is can be set aside in two files")
    except OSError as error:
        check(error.errno == errno.ENOSPC, f"fallocate of too much: {error}")
    os.close(other)
    os.unlink(path(volume, "other"))
    return log


def write_log(log, content, seed):
    """As a database writes its log: pages at random, each synced, half of them through a mapping."""
    numbers = random.Random(seed)
    mapping = mmap.mmap(log, LOG_SIZE)
    for i in range(WRITES):
        at = numbers.randrange(LOG_SIZE // PAGE) * PAGE
        page = os.urandom(PAGE)
        if i % 2:
            mapping[at:at + PAGE] = page
            mapping.flush(at, PAGE)
        else:
            os.pwrite(log, page, at)
            os.fdatasync(log)
        content[at:at + PAGE] = page
    mapping.close()


def run():
    seed = int(os.environ.get("NACRE_SEED") or random.randrange(1 << 32))
    print(f"NACRE_SEED={seed}", flush=True)
    with LoopDisk("reserved-space", 256 * MIB) as disk, Volume("reserved-space") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make()
        volume.mount("-o", "commit=1")
        empty = room(volume)
        log = reserve(volume)
        fill(volume, "filler")
        content = bytearray(LOG_SIZE)
        for i in range(ROUNDS):
            try:
                write_log(log, content, seed + i)
            except OSError as error:
                raise Failure(f"round {i}: a write into what was set aside: {error}") from error
            os.close(log)
            if i % 2:
                volume.unmount(expect=(0, 8))
            else:
                volume.kill()
                volume.detach()
            volume.mount("-o", "commit=1")
            log = os.open(path(volume, "log"), os.O_RDWR)
            check(os.pread(log, LOG_SIZE, 0) == content, f"round {i}: the log is not what was synced")
            fill(volume, f"more.{i}")  # with what was only dead so far
            print(f"  round {i}: {WRITES} pages, all there", flush=True)
        os.close(log)
        for name in os.listdir(volume.mnt):
            os.unlink(path(volume, name))
        volume.run("nacre", "sync", volume.mnt, expect=(0, 8))
        volume.run("nacre", "trim", volume.mnt)
        check(room(volume) > empty - 24 * MIB, f"{room(volume)} of {empty} bytes came back")
        volume.unmount(expect=(0, 8))
        volume.fsck("--scrub")


if __name__ == "__main__":
    run()
