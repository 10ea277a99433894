#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs keep their state in a file that they rewrite again and again, sync and read back, and then
leave alone. Whatever the state's size and place, however it is written and synced: it is read as the
last one, at once, without the kernel's pages, after a sync, after the volume has merged what it kept in
pieces, and after a new mount.

    state_files.py [--seed N] [--groups N]

The volume numbers what it stores. Files that are rewritten in turn get their numbers in turn, and
what is merged gets the next ones: so groups of 1, 3, 5, 7, 9 and 13 files meet their own states of 63 and
65 numbers before. NACRE_LONG: 60 groups on each volume.
"""
import argparse
import concurrent.futures
import ctypes
import errno
import functools
import json
import mmap
import os
import platform
import random
import sys
import time

here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(here, "../support"), os.path.join(here, "exerciser")]
from exercise_mount import enter_own_mounts, in_parallel  # noqa: E402
from volume import Failure, Volume, full_counts, skip_part, wait_for  # noqa: E402

PAGE = 4096
CHUNK_SIZES = ("4K", "64K")
SIZES = (1, 7, 100, 700, 1000, 4095, 4096, 4097, 8192, 10_000, 30_000, 65_535, 65_536, 70_001,
         131_072, 200 << 10)
OFFSETS = (0, 0, 0, 1, 4096, 5000, 65_536 - 100, 65_536, 70_000)
ROUNDS = (40, 64, 66, 67, 70, 100)
LONG_ROUNDS = ROUNDS + (130, 200)
GROUP_SIZES = (1, 3, 5, 7, 1, 9, 13)
WAYS = ("pwrite", "direct", "aio", "mmap", "truncate", "rename")
SYNCS = ("fsync", "fdatasync", "O_SYNC", "O_DSYNC", "another file", "none")

libc = ctypes.CDLL(None, use_errno=True)


class ControlBlock(ctypes.Structure):
    """struct iocb of linux/aio_abi.h, on machines with the low byte first."""
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("opcode", ctypes.c_uint16), ("priority", ctypes.c_int16), ("fd", ctypes.c_uint32),
                ("buffer", ctypes.c_uint64), ("size", ctypes.c_uint64), ("offset", ctypes.c_int64),
                ("reserved", ctypes.c_uint64), ("more_flags", ctypes.c_uint32),
                ("event_fd", ctypes.c_uint32)]


class Aio:
    """One write at a time by the kernel's AIO."""
    NUMBERS = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}  # get_events, submit: last
    WRITE = 1

    def __init__(self):
        self.setup, self.destroy, self.get_events, self.submit = self.NUMBERS[platform.machine()]
        self.context = ctypes.c_uint64(0)
        self.call(self.setup, ctypes.c_long(1), ctypes.byref(self.context))

    @classmethod
    def is_known(cls):
        return platform.machine() in cls.NUMBERS and sys.byteorder == "little"

    @staticmethod
    def call(number, *arguments):
        done = libc.syscall(ctypes.c_long(number), *arguments)
        if done < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return done

    def pwrite(self, fd, memory, offset):
        place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        block = ControlBlock(opcode=self.WRITE, fd=fd, buffer=place, size=len(memory), offset=offset)
        blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        self.call(self.submit, self.context, ctypes.c_long(1), blocks)
        event = (ctypes.c_int64 * 4)()
        if self.call(self.get_events, self.context, ctypes.c_long(1), ctypes.c_long(1), event,
                     None) != 1 or event[2] != len(memory):
            raise Failure(f"AIO wrote {event[2]} of {len(memory)} bytes")

    def close(self):
        self.call(self.destroy, self.context)


def on_pages(data):
    """The same bytes in memory that O_DIRECT takes."""
    memory = mmap.mmap(-1, max(len(data), 1))
    memory[:len(data)] = data
    return memory


class StateFile:
    """One file and how its state is rewritten."""

    def __init__(self, folder, name, draw, rounds, size_max):
        self.path = os.path.join(folder, name)
        self.way = draw.choice(WAYS)
        self.sync = draw.choice(SYNCS)
        self.size = draw.choice([size for size in SIZES if size <= size_max])
        self.offset = draw.choice(OFFSETS)
        self.rounds = rounds
        self.seed = draw.randrange(1 << 30)
        if self.way == "aio" and not Aio.is_known():
            skip_part("state files by AIO", f"its calls on {platform.machine()} are not known here")
            self.way = "direct"
        if self.way in ("direct", "aio"):
            self.size = -(-self.size // PAGE) * PAGE
            self.offset = self.offset // PAGE * PAGE
        if self.way in ("truncate", "rename"):
            self.offset = 0
        around = 0 if self.way in ("truncate", "rename") else draw.choice((0, 0, 1, 9000))
        self.before = random.Random(self.seed).randbytes(self.offset)
        self.behind = random.Random(self.seed + 1).randbytes(around)
        self.fd = self.other = self.aio = None
        self.now = -1

    def __str__(self):
        return (f"{os.path.basename(self.path)}: {self.size} bytes at {self.offset} of "
                f"{len(self.before) + self.size + len(self.behind)}, {self.rounds} times by {self.way}, "
                f"sync: {self.sync}")

    def state(self, number):
        """Half of the files hold what cannot be compressed."""
        if self.seed % 2:
            return random.Random(self.seed + 2 + number).randbytes(self.size)
        return (b"%d:%d\n" % (number, self.seed) * (self.size // 4 + 1))[:self.size]

    def content(self, number):
        return self.before + self.state(number) + self.behind

    def open(self):
        flags = {"O_SYNC": os.O_SYNC, "O_DSYNC": os.O_DSYNC}.get(self.sync, 0)
        if self.way in ("direct", "aio"):
            flags |= os.O_DIRECT
        with open(self.path, "wb") as f:
            f.write(self.before + bytes(self.size) + self.behind)
        if self.before or self.behind:
            self.sync_now(os.open(self.path, os.O_RDWR), closes=True)
        self.fd = os.open(self.path, os.O_RDWR | flags)
        self.other = os.open(self.path + ".other", os.O_RDWR | os.O_CREAT, 0o600)
        if self.way == "aio":
            self.aio = Aio()

    @staticmethod
    def sync_now(fd, closes=False):
        os.fsync(fd)
        if closes:
            os.close(fd)

    def rewrite(self, number):
        data = self.state(number)
        if self.way == "pwrite":
            os.pwrite(self.fd, data, self.offset)
        elif self.way == "direct":
            with on_pages(data) as memory:
                os.pwrite(self.fd, memory, self.offset)
        elif self.way == "aio":
            self.write_by_aio(data)
        elif self.way == "mmap":
            with mmap.mmap(self.fd, self.offset + self.size) as mapped:
                mapped[self.offset:self.offset + self.size] = data
                if self.sync != "none":
                    mapped.flush()
        elif self.way == "truncate":
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, data, 0)
        else:
            self.rename_over(data)
        if self.sync == "fsync":
            os.fsync(self.fd)
        elif self.sync == "fdatasync":
            os.fdatasync(self.fd)
        elif self.sync == "another file":
            os.pwrite(self.other, data[:64], 0)
            os.fsync(self.other)
        self.now = number

    def write_by_aio(self, data):
        memory = on_pages(data)  # not closed: a name of its address lives on for a moment
        self.aio.pwrite(self.fd, memory, self.offset)

    def rename_over(self, data):
        flags = {"O_SYNC": os.O_SYNC, "O_DSYNC": os.O_DSYNC}.get(self.sync, 0)
        fresh = os.open(self.path + ".new", os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o600)
        os.pwrite(fresh, data, 0)
        os.rename(self.path + ".new", self.path)
        os.close(self.fd)
        self.fd = fresh

    def read_direct(self):
        """Past the kernel's pages, where the kernel lets it."""
        size = len(self.before) + self.size + len(self.behind)
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            fd = os.open(self.path, os.O_RDONLY)
        try:
            with mmap.mmap(-1, -(-(size + 1) // PAGE) * PAGE) as memory:
                count = os.preadv(fd, [memory], 0)
                return memory[:count]
        finally:
            os.close(fd)

    def read_buffered(self):
        with open(self.path, "rb") as f:
            return f.read()

    def check(self, when, read):
        found = read()
        if found == self.content(self.now):
            return
        older = [n for n in range(self.now) if found == self.content(n)]
        what = f"state {older[0]}" if older else "none of its states"
        raise Failure(f"{self}: {when} it reads as {what}, and must read as state {self.now}")

    def check_both(self, when):
        self.check(when + ", O_DIRECT,", self.read_direct)
        self.check(when + ",", self.read_buffered)

    def close(self):
        os.close(self.fd)
        os.close(self.other)
        if self.aio:
            self.aio.close()


class Bench:
    """A mounted volume and the state files on it."""

    def __init__(self, volume, chunk_size, seed):
        self.volume, self.draw = volume, random.Random(seed)
        self.files = []
        volume.make("--chunk-size", chunk_size)
        volume.mount("-o", "commit=1")  # an idle moment comes the sooner

    def stats(self):
        return json.loads(self.volume.run("nacre", "stats", "--json", self.volume.mnt)[1])["stats"]

    def appended(self):
        return self.stats()["segments"]["appended_record_count"]

    def new_files(self, count, size_max=SIZES[-1]):
        rounds = self.draw.choice(LONG_ROUNDS if full_counts() else ROUNDS)
        fresh = [StateFile(self.volume.mnt, f"state{len(self.files) + i}", self.draw, rounds, size_max)
                 for i in range(count)]
        self.files += fresh
        for file in fresh:
            file.open()
        return fresh

    def rewrite_in_turn(self, files):
        """What is read past the kernel's pages is what the daemon keeps in mind of each state."""
        for number in range(files[0].rounds):
            for file in files:
                file.rewrite(number)
                file.check("at once", file.read_direct)

    @staticmethod
    def close(files):
        for file in files:
            file.close()

    @staticmethod
    def drop_caches():
        if os.getuid() == 0:
            os.sync()
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
                f.write("3\n")

    def check(self, files, when):
        for file in files:
            file.check_both(when)

    def left_alone(self, files):
        """What an fsync hands over is a row of a table. It is a record once it was merged."""
        before = self.appended()

        def is_merged():
            time.sleep(0.5)  # the daemon waits for a pause
            return self.appended() > before
        wait_for(is_merged, 120, "the daemon has merged nothing")
        self.check(files, "left alone")

    def end(self):
        self.check(self.files, "in the end")
        self.volume.unmount()
        self.volume.wait_for_daemons(60)
        self.volume.mount()
        self.check(self.files, "after a new mount")
        self.volume.unmount()
        self.volume.wait_for_daemons(60)
        self.volume.fsck("--deep")


def states_and_trim(chunk_size, seed, group_count):
    """One group after the other, each merged as soon as it is written."""
    with Volume(f"states-{chunk_size}") as volume:
        bench = Bench(volume, chunk_size, seed)
        for i in range(group_count):
            files = bench.new_files(GROUP_SIZES[i % len(GROUP_SIZES)])
            bench.rewrite_in_turn(files)
            if i % 2:
                volume.run("nacre", "sync", volume.mnt)
                bench.check(files, "after a sync")
            volume.run("nacre", "trim", volume.mnt)
            bench.check(files, "after a trim")
            bench.close(files)
        bench.end()


def states_left_alone(chunk_size, seed, file_count):
    """Many files at once; then a few in turn that the daemon merges by itself."""
    with Volume(f"states-alone-{chunk_size}") as volume:
        bench = Bench(volume, chunk_size, seed)
        files = bench.new_files(file_count)
        with concurrent.futures.ThreadPoolExecutor(file_count) as pool:
            for done in [pool.submit(bench.rewrite_in_turn, [file]) for file in files]:
                done.result()
        volume.run("nacre", "trim", volume.mnt)
        bench.drop_caches()
        bench.check(files, "after a trim, without the kernel's pages")
        in_turn = bench.new_files(5, size_max=PAGE)  # little, or it is merged without a pause
        for file in in_turn:
            file.sync = "fsync"
        bench.rewrite_in_turn(in_turn)
        bench.left_alone(files + in_turn)
        bench.drop_caches()
        bench.check(files + in_turn, "left alone, without the kernel's pages")
        bench.close(files + in_turn)
        bench.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int,
                        default=int(os.environ.get("NACRE_SEED") or random.randrange(1_000_000)))
    # On each of the volumes whose files are merged at once.
    parser.add_argument("--groups", type=int, default=60 if full_counts() else 4)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    enter_own_mounts()
    tasks = []
    for i, chunk_size in enumerate(CHUNK_SIZES):
        tasks.append(functools.partial(states_and_trim, chunk_size, arguments.seed + 2 * i,
                                       arguments.groups))
        tasks.append(functools.partial(states_left_alone, chunk_size, arguments.seed + 2 * i + 1, 8))
    in_parallel(tasks)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
